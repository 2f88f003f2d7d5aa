"""GPT for time series: flash attention, bfloat16, data parallelism, background checkpoints."""
