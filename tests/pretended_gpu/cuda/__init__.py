"""CUDA in Python, below a CPU build of torch: on the path of the processes that find a pretended machine."""
