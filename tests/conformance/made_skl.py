"""Pipelines of scikit-learn as skl2onnx exports them, at its default options, against scikit-learn's own answers. The
list of maps that a classifier ends in is compared as the tensor of the maps' values."""
import warnings

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR

warnings.filterwarnings("ignore", category=FutureWarning)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)


def answers(model, x):
    labels = model.predict(x)
    labels = labels.astype(object if labels.dtype.kind in "OU" else np.int64)
    return [labels, model.predict_proba(x).astype(np.float32)]


def cases():
    x, y = load_iris(return_X_y=True)
    x, given = x.astype(np.float32), x[::16].astype(np.float32)
    two, target = y > 0, x[:, 0] * 2 - x[:, 1] * x[:, 2]
    classifiers = {
        "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), y),
        "logistic_two": (make_pipeline(MinMaxScaler(), LogisticRegression()), two.astype(np.int64)),
        "forest_names": (make_pipeline(Normalizer(), RandomForestClassifier(5, random_state=1)), NAMES[y]),
        "svc": (make_pipeline(StandardScaler(), SVC(probability=True, random_state=1)), y),
        "svc_two_names": (SVC(kernel="poly", probability=True, random_state=1), NAMES[two.astype(int)]),
        "neighbours": (KNeighborsClassifier(4), y),
        "bayes": (make_pipeline(PolynomialFeatures(2), GaussianNB()), y),
        "network": (make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=40, random_state=1)), y),
        "boosted": (AdaBoostClassifier(n_estimators=5, random_state=1), y),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks that have not converged
        for name, (model, labels) in classifiers.items():
            model.fit(x, labels)
            yield f"skl_{name}", to_onnx(model, x[:1]), [given], answers(model, given)
    for name, model in {"svr": make_pipeline(StandardScaler(), SVR()), "ridge": make_pipeline(
            PolynomialFeatures(2), Ridge()), "gradient": GradientBoostingRegressor(n_estimators=8)}.items():
        model.fit(x, target)
        yield (f"skl_{name}", to_onnx(model, x[:1]), [given],
               [model.predict(given).astype(np.float32).reshape(-1, 1)])
    model = KMeans(3, n_init=1, random_state=1).fit(x)
    yield "skl_clusters", to_onnx(model, x[:1]), [given], [model.predict(given).astype(np.int64),
                                                           model.transform(given).astype(np.float32)]
    model = IsolationForest(n_estimators=8, random_state=1).fit(x)
    yield ("skl_isolation", to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3}), [given],
           [model.predict(given).astype(np.int64).reshape(-1, 1),
            model.decision_function(given).astype(np.float32).reshape(-1, 1)])
    # Columns of text beside columns of numbers, some of which are missing.
    colours = np.array(["red", "green", "blue", "grün"], dtype=object)[(np.arange(len(x)) * 7 + y) % 4].reshape(-1, 1)
    holes = x.copy()
    holes[::5, 2] = np.nan
    table = np.concatenate([colours, holes.astype(object)], axis=1)
    model = make_pipeline(ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), [0]), (
        "n", make_pipeline(SimpleImputer(), StandardScaler()), [1, 2, 3, 4])]), LogisticRegression()).fit(table, NAMES[y])
    proto = to_onnx(model, initial_types=[("colour", StringTensorType([None, 1])), ("x", FloatTensorType([None, 4]))])
    yield "skl_columns", proto, [colours[::16], holes[::16]], answers(model, table[::16])
