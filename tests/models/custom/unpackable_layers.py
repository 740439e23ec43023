"""A file that users' modules import, as many keep their layers in one."""


def first(x):
    return x * x[0, 0, 0].item()
