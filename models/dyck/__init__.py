from models.dyck.minimal import Minimal
from models.model import Model

MODELS: dict[str, type[Model]] = {"minimal_first_layer": Minimal}
