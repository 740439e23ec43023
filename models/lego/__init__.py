from models.lego.clauses import Clauses
from models.lego.lego_theory import LegoTheory
from models.lego.lego_transformer import LegoTransformer
from models.model import Model

MODELS: dict[str, type[Model]] = {"clauses": Clauses, "lego_theory": LegoTheory, "lego_transformer": LegoTransformer}
