"""What goes wrong on purpose: lost answers, refusals, stale lists, stock-outs, preemptions.

`model` says what a fault is, `table` holds those that were asked for, `calls` and `lists` apply
them to the job service, `proxy` and `front` to Cloud Storage, `jobs` to jobs that run. Off unless
asked for. docs/faults.md is the guide.
"""
