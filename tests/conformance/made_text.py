"""Text: what ONNX Runtime says where it and the standard agree; elsewhere the standard."""
import numpy as np

from made import by_ort, model_of, texts

LINES = texts("a.b", "", ".", "a..b.", "..", "long text without", "ä.ö", "x" * 3000)
BLANKS = texts("hello world", "  two  blanks ", "", "   ", "a\tb\nc", "one")


def split():
    for most in (None, 0, 1, 2):
        attributes = {} if most is None else {"maxsplit": most}
        for name, x, delimiter in (("dot", LINES, "."), ("two", LINES, ".."), ("blank", BLANKS, " "),
                                   ("grid", BLANKS.reshape(2, 3), "o")):
            # An empty text has one piece by the standard (none in ONNX Runtime).
            pieces = [t.split(delimiter, -1 if most is None else most) for t in x.flatten()]
            width = max(map(len, pieces))
            y = np.array([p + [""] * (width - len(p)) for p in pieces], dtype=object).reshape(x.shape + (width,))
            counts = np.array([len(p) for p in pieces], np.int64).reshape(x.shape)
            yield (f"split_{name}_{most}", model_of("StringSplit", [x], 2, delimiter=delimiter, **attributes), [x],
                   [y, counts])
    for most in (-1, 0, 1):
        pieces = [[p.rstrip() for p in t.split(None, most)] for t in BLANKS]
        width = max(map(len, pieces))
        y = np.array([p + [""] * (width - len(p)) for p in pieces], dtype=object)
        yield (f"split_space_{most}", model_of("StringSplit", [BLANKS], 2, maxsplit=most), [BLANKS],
               [y, np.array([len(p) for p in pieces], np.int64)])


def normalise():
    words = texts("Monday", "tuesday", "MONDAY", "Ärger", "straße", "monday", "ЖУК", "ΑΒΓ")
    for case in ("NONE", "LOWER", "UPPER"):
        for sensitive in (0, 1):
            for stops in ([], ["monday"], ["ärger", "MONDAY"]):
                attributes = {"stopwords": stops} if stops else {}
                kept = [w for w in words if not (w in stops if sensitive else w.lower() in [s.lower() for s in stops])]
                change = {"NONE": str, "LOWER": str.lower, "UPPER": lambda s: s.upper().replace("STRASSE", "STRAßE")}
                y = texts(*[change[case](w) for w in kept])
                for rows in (False, True):
                    x = words.reshape(1, -1) if rows else words
                    yield (f"normalise_{case}_{sensitive}_{len(stops)}_{rows}",
                           model_of("StringNormalizer", [x], case_change_action=case, is_case_sensitive=sensitive,
                                    **attributes), [x], [y.reshape(1, -1) if rows else y])


PATTERNS = ("", "a*", "(a|b)*c", "a{2,3}", "a{2}", "a{,2}", "[^a-c]+", "[[:alpha:]_]+", r"\d+\.\d*", r"(?i)HELLO", ".*",
            r"(?s).*", "^abc$", "a|", "(?:ab)+", r"\bfoo\b.*", r"[\w.-]+@[\w-]+\.com", "x*y*z*", r"\Qa.b\E", "(?P<n>a+)b",
            "a+?b??", r"[\]a-]+", "(a?){20}a{20}", r"\x41\x{42}", r"[^\s]+", r"\S+\s\S+", "(?m)^a$\n^b$")
SUBJECTS = texts("", "a", "aa", "aaa", "abc", "c", "ababc", "hello", "HeLLo", "3.14", "foo bar", "me.x@site-a.com", "a\nb",
                 "xyz", "zyx", "a.b", "aab", "]-a", "AB", "two words", "äöü", "a" * 20, "a" * 41)


def match():
    for i, pattern in enumerate(PATTERNS):
        yield by_ort(f"regex_{i}", "RegexFullMatch", [SUBJECTS], pattern=pattern)


def concat():
    a = LINES[:6].reshape(2, 3)
    for name, b in (("row", texts("x", "", "z")), ("one", texts("+")), ("column", texts("1", "2").reshape(2, 1))):
        yield by_ort(f"concat_{name}", "StringConcat", [a, b])


def grams():
    words = np.random.default_rng(5).integers(0, 6, (4, 30))
    pool = [0, 1, 5, 2, 0, 1, 1, 2, 3, 3, 0, 0, 1, 2, 3, 4, 0, 5, 2, 2, 2]
    names = [f"w{v}" for v in pool]
    common = {"ngram_counts": [0, 4, 12], "ngram_indexes": [0, 7, 2, 3, 4, 5, 6, 1, 8, 9, 10]}
    weights = [0.5 + i / 7 for i in range(11)]
    for mode in ("TF", "IDF", "TFIDF"):
        for low, high in ((1, 1), (1, 2), (2, 2), (1, 3), (3, 3)):
            for skip in (0, 2, 100):
                case = dict(common, mode=mode, min_gram_length=low, max_gram_length=high, max_skip_count=skip)
                name = f"{mode}_{low}_{high}_{skip}"
                yield by_ort(f"grams_{name}", "TfIdfVectorizer", [words.astype(np.int32)], pool_int64s=pool, **case)
                text = texts(*[f"w{v}" for v in words[0]])
                yield by_ort(f"grams_text_{name}", "TfIdfVectorizer", [text], pool_strings=names, weights=weights, **case)


def cases():
    for group in (split, normalise, match, concat, grams):
        yield from group()


def hostile():
    for i, pattern in enumerate(("(", ")", "a**", "[", "[b-a]", "(?=a)", r"\1", "a{2000}", "((((a{1000}){1000}){1000}))",
                                 "(" * 5000, "(((){1000}){1000}){1000}", "(?q)", r"\p{Greek}", "[[:no:]]", "*")):
        yield f"regex_bad_{i}", model_of("RegexFullMatch", [SUBJECTS], pattern=pattern)
    words = np.zeros((2, 3), np.int64)
    good = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "pool_int64s": [1, 2],
            "ngram_counts": [0], "ngram_indexes": [0, 1]}
    for i, bad in enumerate(({"ngram_counts": [5]}, {"ngram_counts": [0, -1]}, {"ngram_indexes": [0, -1]},
                             {"ngram_indexes": [0]}, {"mode": "X"}, {"min_gram_length": 0}, {"max_skip_count": -1},
                             {"ngram_indexes": [0, 2**40]}, {"ngram_counts": [0, 1], "max_gram_length": 2},
                             {"weights": [1.0], "mode": "IDF"})):
        yield f"grams_bad_{i}", model_of("TfIdfVectorizer", [words], **dict(good, **bad))
    yield "normalise_case", model_of("StringNormalizer", [LINES], case_change_action="SOME")
    yield "normalise_rows", model_of("StringNormalizer", [LINES.reshape(2, 4)])
