"""A GPT for time series: flash attention, bfloat16, data parallel, background checkpoints."""
