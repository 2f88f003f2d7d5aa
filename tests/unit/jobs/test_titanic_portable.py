import itertools
import json

import numpy as np
import pytest
from titanic import portable
from titanic.data import load_split
from titanic.features import fit

PASSENGER = {"passenger_class": 3, "sex": "male", "age": 22, "title": "Mr", "party_size": 1}


@pytest.fixture
def split(titanic_data):
    return load_split(str(titanic_data / "test.npz"))


@pytest.fixture
def model(split):
    fitted = fit(split.columns)
    random = np.random.default_rng(1)
    sizes = [len(fitted.feature_names), 8, 1]
    layers = [
        (random.normal(size=(to, of)).astype(np.float32), np.ones(to, np.float32))
        for of, to in itertools.pairwise(sizes)
    ]
    return portable.PortableModel(layers, fitted)


def test_a_model_that_was_written_predicts_the_same(model, split):
    again = portable.load(model.dump())
    probabilities = again.probabilities(split.columns)
    assert (probabilities == model.probabilities(split.columns)).all()
    assert len(set(probabilities.tolist())) > 10
    assert ((probabilities > 0) & (probabilities < 1)).all()


def test_a_split_as_passengers_of_requests_predicts_the_same(model, split):
    rows = json.loads(json.dumps(portable.passengers(split.columns)))
    assert None in [row["age"] for row in rows]
    columns = portable.columns([portable.parse(row) for row in rows])
    assert (model.probabilities(columns) == model.probabilities(split.columns)).all()


def test_predictions_of_a_run_say_what_was_asked(split):
    lines = portable.predictions_jsonl(split.columns, [0.25] * len(split)).decode().splitlines()
    assert len(lines) == len(split)
    first = json.loads(lines[0])
    assert first == {"instance": portable.passengers(split.columns)[0], "prediction": 0.25}


def test_a_model_of_another_format_is_refused():
    with pytest.raises(ValueError, match=r"model\.json has format 2, but this code reads 1"):
        portable.load(b'{"format": 2}')


def test_a_whole_number_may_be_written_with_a_point():
    assert portable.parse(PASSENGER | {"passenger_class": 3.0})["passenger_class"] == 3


@pytest.mark.parametrize(
    ("passenger", "told"),
    [
        (PASSENGER | {"party_size": 1.5}, "party_size is 1.5, not a whole number"),
        (PASSENGER | {"age": "x"}, 'age is "x", not a number, or null if unknown'),
        (PASSENGER | {"passenger_class": True}, "passenger_class is true, not a whole number"),
        (PASSENGER | {"sex": None}, "sex is null, not text"),
        (PASSENGER | {"agee": 3}, "has 'agee', which is not one of passenger_class, sex, age"),
        ([3, "male"], "must be an object with passenger_class, sex, age, title, party_size"),
    ],
)
def test_what_is_no_passenger_is_refused(passenger, told):
    with pytest.raises(ValueError, match=told):
        portable.parse(passenger)
