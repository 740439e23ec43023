"""How accurate is a random forest on the handwritten digits, and how much of that is luck? One call is one seed."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split


def measure(seed, settings):
    """The seed decides which digits are held out and how the trees grow."""
    images, labels = load_digits(return_X_y=True)
    train, test, wanted, expected = train_test_split(images, labels, test_size=0.25, random_state=seed)
    forest = RandomForestClassifier(n_estimators=settings["trees"], max_depth=settings["depth"], random_state=seed)
    forest.fit(train, wanted)
    return {"accuracy": forest.score(test, expected), "count": len(expected)}
