"""The first hour on a new kind of GPU, as six commands of at most ten minutes each."""
