"""ai.onnx.ml as scikit-learn's models are exported, compared with ONNX Runtime; hostile attributes."""
import itertools

import numpy as np
from onnx import helper
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

from made import by_ort, floats, model_of, texts

ML = {"domain": "ai.onnx.ml", "ml": 3}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def tree_attributes(estimators, weights, prefix, mode="BRANCH_LEQ", missing=None):
    """The lists of the nodes of scikit-learn's trees; `weights` gives what a leaf has, (id, weight) pairs."""
    a = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                                     "falsenodeids", "hitrates")}
    a |= {f"{prefix}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    count = 0
    for t, estimator in enumerate(estimators):
        tree = estimator.tree_
        for n in range(tree.node_count):
            leaf = tree.children_left[n] < 0
            row = (t, n, max(tree.feature[n], 0), "LEAF" if leaf else mode if isinstance(mode, str) else mode[count % 6],
                   float(tree.threshold[n]), max(tree.children_left[n], 0), max(tree.children_right[n], 0), 1.0)
            count += 1
            for key, value in zip(("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                                   "hitrates"), row):
                a[f"nodes_{key}"].append(value)
            for number, weight in weights(tree.value[n]) if leaf else ():
                for key, value in zip(("treeids", "nodeids", "ids", "weights"), (t, n, number, float(weight))):
                    a[f"{prefix}_{key}"].append(value)
    if missing is not None:
        a["nodes_missing_value_tracks_true"] = [int(missing(i)) for i in range(count)]
    return a


def rows_of(x, dtype):
    return (x * 3).astype(dtype) if np.issubdtype(dtype, np.integer) else x.astype(dtype)


def regressors():
    for targets in (1, 3):
        x, y = make_regression(60, 6, n_targets=targets, random_state=1)
        forest = RandomForestRegressor(5, max_depth=4, random_state=2).fit(x, y / np.abs(y).max()).estimators_

        def weights(value):
            return enumerate(value[:, 0] / len(forest))
        plain = tree_attributes(forest, weights, "target")
        for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
            for base in ([], [0.5] * targets):
                more = {"base_values": base} if base else {}
                yield by_ort(f"regressor_{targets}_{aggregate}_{len(base)}", "TreeEnsembleRegressor", [x.astype("f4")],
                             n_targets=targets, aggregate_function=aggregate, **plain, **more, **ML)
        for dtype in (np.float64, np.int64, np.int32):
            yield by_ort(f"regressor_{targets}_{np.dtype(dtype)}", "TreeEnsembleRegressor", [rows_of(x, dtype)],
                         n_targets=targets, **plain, **ML)
        for transform in TRANSFORMS[:4]:
            yield by_ort(f"regressor_{targets}_{transform}", "TreeEnsembleRegressor", [x.astype("f4")],
                         n_targets=targets, post_transform=transform, **plain, **ML)
        whole = np.round(x * 2).astype("f4")
        whole[::3, 1] = np.nan
        for mode in MODES + (MODES,):
            for name, missing in (("none", None), ("all", lambda i: True), ("some", lambda i: i % 3 == 0)):
                a = tree_attributes(forest, weights, "target", mode, missing)
                a["nodes_values"] = [round(v * 2) for v in a["nodes_values"]]
                label = mode if isinstance(mode, str) else "mixed"
                yield by_ort(f"regressor_{targets}_{label}_{name}", "TreeEnsembleRegressor", [whole], n_targets=targets,
                             **dict(a, nodes_values=[float(v) for v in a["nodes_values"]]), **ML)


def top(names, name, model, inputs, outputs):
    """Labels are of the greatest score. (ONNX Runtime has another rule for two classes that both have weights.)"""
    labels = np.array(names, dtype=object if isinstance(names[0], str) else np.int64)
    return name, model, inputs, [labels[np.argmax(outputs[1], axis=1)], outputs[1]]


def classifiers():
    for classes in (2, 3):
        x, y = make_classification(80, 6, n_informative=4, n_classes=classes, random_state=3)
        forest = RandomForestClassifier(4, max_depth=5, random_state=4).fit(x, y).estimators_
        kinds = {"all": lambda v: enumerate(v[0] / v.sum() / len(forest))}
        if classes == 2:
            for only in (0, 1):
                kinds[f"positive_{only}"] = lambda v, k=only: [(k, v[0][1] / v.sum() / len(forest))]
                kinds[f"signed_{only}"] = lambda v, k=only: [(k, v[0][1] / v.sum() - 0.45)]
        for kind, weights in kinds.items():
            a = tree_attributes(forest, weights, "class")
            for labels, transform in itertools.product(("int64s", "strings"), TRANSFORMS):
                if transform == "PROBIT" and kind != "all":
                    continue
                names = list(range(10, 10 + classes)) if labels == "int64s" else [f"c{i}" for i in range(classes)]
                if transform == "SOFTMAX_ZERO" and kind.endswith("_1"):
                    continue  # not a number in ONNX Runtime where both scores are zero
                yield top(names, *by_ort(f"classifier_{classes}_{kind}_{labels}_{transform}", "TreeEnsembleClassifier",
                                         [x.astype("f4")], 2, post_transform=transform, **a,
                                         **{f"classlabels_{labels}": names}, **ML)) if kind == "all" else by_ort(
                    f"classifier_{classes}_{kind}_{labels}_{transform}", "TreeEnsembleClassifier", [x.astype("f4")], 2,
                    post_transform=transform, **a, **{f"classlabels_{labels}": names}, **ML)
            for dtype in (np.float64, np.int64, np.int32):
                case = by_ort(f"classifier_{classes}_{kind}_{np.dtype(dtype)}", "TreeEnsembleClassifier",
                              [rows_of(x, dtype)], 2, classlabels_int64s=list(range(classes)), **a, **ML)
                yield top(range(classes), *case) if kind == "all" else case
            if classes == 2 and kind != "positive_0":
                continue  # where ONNX Runtime adds something else than what the standard says
            base = [0.25 * (i + 1) for i in range(classes)]
            yield by_ort(f"classifier_{classes}_{kind}_base", "TreeEnsembleClassifier", [x.astype("f4")], 2,
                         base_values=base if kind == "all" else base[:1], classlabels_int64s=list(range(classes)), **a,
                         **ML)


def linear():
    x = floats(7, 4)
    for targets in (1, 3):
        c, i = [float(v) for v in floats(targets * 4)], [float(v) for v in floats(targets)]
        for transform in ("NONE", "SOFTMAX", "LOGISTIC") if targets > 1 else ("NONE",):
            yield by_ort(f"linear_regressor_{targets}_{transform}", "LinearRegressor", [x], coefficients=c, intercepts=i,
                         targets=targets, post_transform=transform, **ML)
    for classes in (2, 3):
        data, y = make_classification(60, 4, n_informative=3, n_redundant=0, n_classes=classes, random_state=5)
        model = LogisticRegression().fit(data, y)
        both = np.concatenate([-model.coef_, model.coef_]) if classes == 2 else model.coef_
        bias = np.concatenate([-model.intercept_, model.intercept_]) if classes == 2 else model.intercept_
        sets = {"each": (both, bias)} | ({"one": (model.coef_, model.intercept_)} if classes == 2 else {})
        for (kind, (c, i)), labels, transform in itertools.product(sets.items(), ("ints", "strings"), TRANSFORMS[:4]):
            if kind == "one" and transform != "LOGISTIC" and transform != "NONE":
                continue
            names = list(range(5, 5 + classes)) if labels == "ints" else [f"c{k}" for k in range(classes)]
            for dtype in (np.float32,) if labels == "strings" else (np.float32, np.float64, np.int64, np.int32):
                yield by_ort(f"linear_classifier_{classes}_{kind}_{labels}_{transform}_{np.dtype(dtype)}",
                             "LinearClassifier", [rows_of(data, dtype)], 2, coefficients=c.flatten().tolist(),
                             intercepts=i.tolist(), multi_class=1, post_transform=transform,
                             **{f"classlabels_{labels}": names}, **ML)


def features():
    x = np.round(floats(5, 4) * 4)
    each = [1.5, -2.0, 0.25, 4.0]
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        v, name = x.astype(dtype), np.dtype(dtype)
        yield by_ort(f"scaler_{name}", "Scaler", [v], offset=each, scale=each[::-1], **ML)
        yield by_ort(f"scaler_one_{name}", "Scaler", [v], offset=[2.0], scale=[0.5], **ML)
        for norm in ("MAX", "L1", "L2"):
            yield by_ort(f"normalizer_{norm}_{name}", "Normalizer", [v], norm=norm, **ML)
        yield by_ort(f"picked_{name}", "ArrayFeatureExtractor", [v, np.array([[3, 0, 0]])], **ML)
    yield by_ort("binarizer", "Binarizer", [x], threshold=1.5, **ML)
    holes = x.copy()
    holes[1:3, 2] = np.nan
    yield by_ort("imputer_nan", "Imputer", [holes], imputed_value_floats=each, replaced_value_float=float("nan"), **ML)
    yield by_ort("imputer_one", "Imputer", [x], imputed_value_floats=[7.0], replaced_value_float=float(x[0, 0]), **ML)
    yield by_ort("imputer_int64", "Imputer", [x.astype("i8")], imputed_value_int64s=[7, 8, 9, 10],
                 replaced_value_int64=int(x[0, 0]), **ML)
    yield by_ort("vectorizer", "FeatureVectorizer", [x, floats(5, 2)], inputdimensions=[4, 2], **ML)
    words = texts("b", "a", "zz", "", "b", "ä").reshape(2, 3)
    numbers = np.array([[3, 1, 7], [0, 3, -1]])
    for name, v, keys in (("strings", words, ["a", "b", "ä"]), ("int64s", numbers, [1, 3, -1])):
        yield by_ort(f"one_hot_{name}", "OneHotEncoder", [v], zeros=1, **{f"cats_{name}": keys}, **ML)
    maps = {"strings": (words, ["a", "b", ""]), "int64s": (numbers, [3, 7, 0]),
            "floats": (np.array([1.5, np.nan, -0.0, 9], np.float32), [float("nan"), 1.5, 0.0])}
    results = {"strings": ["x", "y", "z"], "int64s": [5, 6, 7], "floats": [0.5, 1.5, 2.5]}
    for a, b in itertools.product(maps, results):
        if a != b or a != "int64s":
            yield by_ort(f"labels_{a}_{b}", "LabelEncoder", [maps[a][0]], **{f"keys_{a}": maps[a][1]},
                         **{f"values_{b}": results[b]}, **ML)
    yield by_ort("categories", "CategoryMapper", [words], cats_strings=["a", "b"], cats_int64s=[4, 5], default_int64=-7,
                 **ML)
    yield by_ort("categories_back", "CategoryMapper", [numbers], cats_strings=["a", "b"], cats_int64s=[1, 3],
                 default_string="none", **ML)


def cases():
    for group in (regressors, classifiers, linear, features):
        yield from group()


def hostile():
    x = floats(3, 2)
    good = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0, 0.0, 0.0],
            "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_treeids": [0, 0],
            "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1}
    two = {"nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"]}
    for i, bad in enumerate((
            {"nodes_truenodeids": [7, 0, 0]}, {"nodes_truenodeids": [-1, 0, 0]}, {"nodes_featureids": [5, 0, 0]},
            {"nodes_featureids": [-1, 0, 0]}, {"nodes_nodeids": [0, 1, 1]}, {"nodes_values": [1.0]},
            {"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"]}, {"target_ids": [0, 9]}, {"target_ids": [0, -1]},
            {"target_nodeids": [1, 77]}, {"n_targets": 0}, {"n_targets": 2**40}, {"n_targets": -3},
            {"target_weights": [1.0]}, {"nodes_treeids": [0, 0]}, {"nodes_truenodeids": [0, 0, 0]},
            dict(two, nodes_truenodeids=[1, 0, 0]), dict(two, nodes_truenodeids=[1, 1, 0], nodes_falsenodeids=[2, 1, 0]),
            {"aggregate_function": "MEDIAN"}, {"post_transform": "ODD", "n_targets": 2}, {"base_values": [1.0, 2.0]},
            {"nodes_missing_value_tracks_true": [1]})):
        yield f"tree_bad_{i}", model_of("TreeEnsembleRegressor", [x], **dict(good, **bad), **ML)
    splits = helper.make_tensor("s", 1, [1], [0.0])
    new = {"nodes_splits": splits, "nodes_featureids": [0], "nodes_modes": helper.make_tensor("m", 2, [1], [0]),
           "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "nodes_trueleafs": [1], "nodes_falseleafs": [1],
           "leaf_targetids": [0], "leaf_weights": helper.make_tensor("w", 1, [1], [1.0]), "tree_roots": [0],
           "n_targets": 1}
    for i, bad in enumerate(({"tree_roots": [4]}, {"nodes_trueleafs": [0]}, {"nodes_truenodeids": [9]},
                             {"nodes_modes": helper.make_tensor("m", 2, [1], [6])}, {"leaf_targetids": [3]},
                             {"nodes_modes": helper.make_tensor("m", 2, [1], [99])}, {"tree_roots": [-1]},
                             {"aggregate_function": 9}, {"post_transform": -1}, {"n_targets": 2**62})):
        yield f"ensemble_bad_{i}", model_of("TreeEnsemble", [x], domain="ai.onnx.ml", **dict(new, **bad))
    for i, (op, bad) in enumerate((("LinearRegressor", {"coefficients": [1.0, 2.0, 3.0]}),
                                   ("LinearRegressor", {"coefficients": [1.0], "targets": 0}),
                                   ("LinearRegressor", {"coefficients": [1.0, 2.0], "targets": 2**40}),
                                   ("Scaler", {"offset": [1.0, 2.0, 3.0]}), ("Normalizer", {"norm": "L7"}),
                                   ("LabelEncoder", {"keys_floats": [1.0], "values_floats": [1.0, 2.0]}),
                                   ("LabelEncoder", {"keys_strings": ["a"], "values_floats": [1.0]}),
                                   ("LabelEncoder", {}), ("Imputer", {"replaced_value_float": 1.0}),
                                   ("OneHotEncoder", {"cats_strings": ["a"]}))):
        yield f"feature_bad_{i}", model_of(op, [x], **bad, **ML)
