"""Support vector machines of ai.onnx.ml over every attribute, compared with NumPy after the operator's page (coupling of
pairs after Wu, Lin and Weng 2004) and with scikit-learn's own answers; hostile attributes."""
import itertools
import warnings

import numpy as np
from sklearn.datasets import make_classification, make_regression
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from made import model_of

warnings.filterwarnings("ignore", category=FutureWarning)  # of probability=True, which models in use have
ML = {"domain": "ai.onnx.ml", "ml": 3}
KERNELS = ("linear", "poly", "rbf", "sigmoid")
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
DTYPES = (np.float32, np.float64, np.int32, np.int64)
RANDOM = np.random.default_rng(24)


def floats(values):
    return np.asarray(values, np.float32).flatten().tolist()


def kernel_of(a, x):
    vectors = np.array(a["support_vectors"]).reshape(-1, x.shape[1])
    gamma, coef0, degree = a["kernel_params"]
    kind = a.get("kernel_type", "LINEAR")
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - vectors) ** 2).sum(2))
    dot = x @ vectors.T
    return {"LINEAR": lambda: dot, "POLY": lambda: (gamma * dot + coef0) ** degree,
            "SIGMOID": lambda: np.tanh(gamma * dot + coef0)}[kind]()


def couple(r):
    """Probabilities of classes from those of pairs: r[i, j] is that of i among i and j."""
    k = len(r)
    q = -r.T * r + np.diag((r ** 2).sum(0))
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        qp = q @ p
        if np.abs(qp - p @ qp).max() < 0.005 / k:
            break
        for t in range(k):
            p[t] += (p @ q @ p - q[t] @ p) / q[t, t]
            p /= p.sum()
    return p


def probit(p):
    a, x = 0.147, 2 * p - 1
    log = np.log(1 - x * x)
    v = 2 / (np.pi * a) + log / 2
    return np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(v * v - log / a) - v)


def transformed(scores, name):
    if name == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if name in ("SOFTMAX", "SOFTMAX_ZERO"):
        e = np.exp(scores - scores.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    return probit(scores) if name == "PROBIT" else scores


def classify(a, x):
    """What the page of SVMClassifier says: the index of each row's class, and Z."""
    x = x.astype(np.float64)
    k = len(a.get("classlabels_ints", a.get("classlabels_strings")))
    transform = a.get("post_transform", "NONE")
    if not a.get("vectors_per_class"):
        scores = x @ np.array(a["coefficients"]).reshape(k, -1).T + a["rho"][0]
        return scores.argmax(1), transformed(scores, transform)
    kernels = kernel_of(a, x)
    coefficients = np.array(a["coefficients"]).reshape(k - 1, -1)
    ends = np.concatenate([[0], np.cumsum(a["vectors_per_class"])])
    votes, scores, pairs = np.zeros((len(x), k)), [], list(itertools.combinations(range(k), 2))
    for (i, j), rho in zip(pairs, a["rho"]):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        score = kernels[:, of_i] @ coefficients[j - 1, of_i] + kernels[:, of_j] @ coefficients[i, of_j] + rho
        scores.append(score)
        votes[:, i] += score > 0
        votes[:, j] += score <= 0
    scores = np.stack(scores, 1)
    if a.get("prob_a"):
        r = np.zeros((len(x), k, k))
        for n, (i, j) in enumerate(pairs):
            exponent = scores[:, n] * a["prob_a"][n] + a["prob_b"][n]
            r[:, i, j] = 1 / (1 + np.exp(np.minimum(exponent, 700)))
            r[:, i, j] = np.clip(r[:, i, j], 1e-7, 1 - 1e-7)
            r[:, j, i] = 1 - r[:, i, j]
        scores = np.stack([couple(one) for one in r])
    elif k == 2 and transform != "PROBIT":
        scores = np.concatenate([-scores, scores], 1)
    return votes.argmax(1), transformed(scores, transform)


def classifier(name, a, x):
    index, scores = classify(a, x)
    labels = np.array(a.get("classlabels_strings", a.get("classlabels_ints")),
                      dtype=object if "classlabels_strings" in a else np.int64)
    return name, model_of("SVMClassifier", [x], 2, **a, **ML), [x], [labels[index], scores.astype(np.float32)]


def labels_of(classes, strings):
    return {"classlabels_strings": [f"c{i}" for i in range(classes)]} if strings else {
        "classlabels_ints": [7 * i - 3 for i in range(classes)]}


def attributes(model, probability=False):
    """What scikit-learn fitted, as the operator has it. libsvm's score of a pair speaks for the first when above 0."""
    a = {"kernel_type": model.kernel.upper(), "support_vectors": floats(model.support_vectors_),
         "kernel_params": floats([model._gamma, model.coef0, model.degree]),
         "vectors_per_class": model.n_support_.tolist(), "coefficients": floats(model._dual_coef_),
         "rho": floats(model._intercept_)}
    return a | ({"prob_a": floats(model.probA_), "prob_b": floats(model.probB_)} if probability else {})


def random_machine(classes, features, per_class, kind):
    vectors = sum(per_class)
    return {"support_vectors": floats(RANDOM.standard_normal((vectors, features))), "kernel_type": kind,
            "kernel_params": [0.25, 0.5, 3.0], "vectors_per_class": list(per_class),
            "coefficients": floats(RANDOM.standard_normal((classes - 1, vectors))),
            "rho": floats(RANDOM.standard_normal(classes * (classes - 1) // 2))}


def by_numpy():
    for classes, per_class in ((2, (3, 5)), (3, (4, 1, 6)), (5, (2, 3, 9, 1, 4))):
        x = RANDOM.standard_normal((7, 4)).astype(np.float32)
        pairs = classes * (classes - 1) // 2
        for kind in KERNELS:
            a = random_machine(classes, 4, per_class, kind.upper()) | labels_of(classes, kind == "poly")
            yield classifier(f"svm_{classes}_{kind}", a, x)
            chances = {"prob_a": floats(-1 - RANDOM.random(pairs)), "prob_b": floats(RANDOM.standard_normal(pairs))}
            yield classifier(f"svm_{classes}_{kind}_probability", a | chances, x)
        a = random_machine(classes, 4, per_class, "RBF")
        for transform, more in itertools.product(TRANSFORMS, ({}, chances)):
            if transform == "PROBIT" and not more:
                continue  # of what is not between 0 and 1 it is not a number
            yield classifier(f"svm_{classes}_{transform}_{len(more)}",
                             a | more | labels_of(classes, transform == "LOGISTIC") | {"post_transform": transform}, x)
        for dtype in DTYPES:
            yield classifier(f"svm_{classes}_{np.dtype(dtype)}", a | labels_of(classes, False),
                             (x * 3).astype(dtype))
        yield classifier(f"svm_{classes}_positive", a | labels_of(classes, False) | {
            "coefficients": [abs(v) for v in a["coefficients"]]}, x)
        yield classifier(f"svm_{classes}_absent_class", random_machine(
            classes, 4, per_class[:-1] + (0,), "RBF") | labels_of(classes, False), x)
        linear = {"coefficients": floats(RANDOM.standard_normal((classes, 4))), "kernel_type": "RBF",
                  "kernel_params": [0.5, 0.0, 3.0]}
        for transform, rho in itertools.product(TRANSFORMS[:4], ([0.5], [0.25] * classes)):
            yield classifier(f"svm_linear_{classes}_{transform}_{len(rho)}", linear | labels_of(classes, False) | {
                "rho": rho, "post_transform": transform}, x)
    # Scores that a pair's probability is cut off at, and one between 0 and 1 for PROBIT.
    a = random_machine(3, 2, (2, 2, 2), "LINEAR") | labels_of(3, False)
    x = 1e3 * RANDOM.standard_normal((9, 2)).astype(np.float32)
    yield classifier("svm_certain", a | {"prob_a": [-1.0] * 3, "prob_b": [0.0] * 3}, x)
    a = random_machine(2, 2, (1, 1), "SIGMOID") | labels_of(2, False)
    yield classifier("svm_2_probit", a | {"coefficients": [0.25, 0.2], "rho": [0.5], "post_transform": "PROBIT"},
                     RANDOM.standard_normal((9, 2)).astype(np.float32))


def by_scikit_learn():
    """Labels and probabilities as scikit-learn itself gives them."""
    for classes, kernel in itertools.product((2, 3, 4), KERNELS):
        x, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=classes)
        x = x.astype(np.float32)
        model = (NuSVC(nu=0.2, kernel=kernel, probability=True, random_state=1) if kernel == "rbf" else
                 SVC(kernel=kernel, coef0=0.5, probability=True, random_state=1)).fit(x, y)
        a = attributes(model, True) | {"classlabels_ints": list(range(classes))}
        yield (f"svm_sklearn_{classes}_{kernel}", model_of("SVMClassifier", [x[:20]], 2, **a, **ML), [x[:20]],
               [model.predict(x[:20]).astype(np.int64), model.predict_proba(x[:20]).astype(np.float32)])


def regressors():
    x, y = make_regression(40, 5, random_state=2)
    x, y = x.astype(np.float32), y / np.abs(y).max()

    def case(name, a, given, expected):
        return (f"svm_regressor_{name}", model_of("SVMRegressor", [given], 1, **a, **ML), [given],
                [np.asarray(expected, np.float32).reshape(-1, 1)])
    for kernel in KERNELS:
        for name, model in (("svr", SVR(kernel=kernel, coef0=0.5).fit(x, y)), ("one_class", OneClassSVM(
                kernel=kernel, coef0=0.5, nu=0.4).fit(x))):
            a = {"kernel_type": kernel.upper(), "kernel_params": floats([model._gamma, model.coef0, model.degree]),
                 "support_vectors": floats(model.support_vectors_), "coefficients": floats(model.dual_coef_),
                 "n_supports": len(model.support_vectors_), "rho": floats(model.intercept_),
                 "one_class": int(name == "one_class")}
            yield case(f"{name}_{kernel}", a, x[:15], model.predict(x[:15]))
    model = SVR(kernel="linear").fit(x, y)
    a = {"coefficients": floats(model.coef_), "rho": floats(model.intercept_)}
    for dtype in DTYPES:
        given = (x[:9] * 4).astype(dtype)
        yield case(f"linear_{np.dtype(dtype)}", a, given, model.predict(given))
    yield case("linear_one_class", a | {"one_class": 1}, x[:9], np.where(model.predict(x[:9]) > 0, 1, -1))
    for transform in TRANSFORMS[:4]:
        yield case(f"linear_{transform}", a | {"post_transform": transform}, x[:9], model.predict(x[:9]))
    chances = RANDOM.random((9, 1)).astype(np.float32)
    yield case("linear_PROBIT", {"coefficients": [1.0], "rho": [0.0], "post_transform": "PROBIT"}, chances,
               probit(chances.astype(np.float64)))


def cases():
    for group in (by_numpy, by_scikit_learn, regressors):
        yield from group()


def changed(good, bad):
    """The attributes with those of `bad`; an empty list is an attribute that is not there."""
    return {key: value for key, value in (good | bad).items() if value != []}


def hostile():
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    good = random_machine(3, 4, (2, 1, 3), "RBF") | labels_of(3, False)
    for i, bad in enumerate((
            {"vectors_per_class": [2, 1]}, {"vectors_per_class": [2, -1, 5]}, {"vectors_per_class": [2**62, 2**62, 4]},
            {"vectors_per_class": [2**31 - 1, 1, 1]}, {"support_vectors": [1.0] * 23}, {"support_vectors": []},
            {"support_vectors": [1.0] * 6}, {"coefficients": [1.0] * 11}, {"coefficients": []}, {"rho": [1.0, 2.0]},
            {"prob_a": [1.0, 2.0, 3.0]}, {"prob_a": [1.0], "prob_b": [1.0]}, {"kernel_type": "ODD"},
            {"kernel_params": [1.0]}, {"post_transform": "ODD"}, {"classlabels_ints": []},
            {"classlabels_ints": [1], "vectors_per_class": [6]}, {"rho": []})):
        yield f"svm_bad_{i}", model_of("SVMClassifier", [x], 2, **changed(good, bad), **ML)
    good = {"coefficients": [1.0, 2.0], "n_supports": 2, "support_vectors": [1.0] * 8, "rho": [0.5]}
    for i, bad in enumerate(({"n_supports": 3}, {"n_supports": 2**60}, {"n_supports": 0}, {"rho": []},
                             {"support_vectors": [1.0] * 6}, {"kernel_type": "ODD"})):
        yield f"svm_regressor_bad_{i}", model_of("SVMRegressor", [x], 1, **changed(good, bad), **ML)
