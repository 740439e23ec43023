"""The first hour on a new kind of GPU, as five commands of at most ten minutes each."""
