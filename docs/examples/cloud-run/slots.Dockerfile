FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /srv/training
COPY . .
RUN make setup DEPLOY=1
ENTRYPOINT ["make", "-o", "setup", "advance"]
