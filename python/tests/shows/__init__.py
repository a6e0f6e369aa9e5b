"""What the main job promises end to end: models, memory, threads, fork, an older torch."""
