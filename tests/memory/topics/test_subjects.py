"""Texts are compared by their content words."""

from longtable.memory.topics.subjects import keywords, overlap, rarity, terms, words


def test_common_words_and_particles_are_no_terms() -> None:
    assert "the" not in terms("show me the delayed flights")
    assert terms("q46") == ["q46"]
    assert "航班" in terms("请问航班的数量")


def test_the_weightiest_text_gives_a_term_its_weight() -> None:
    weights = words(("delayed flights", 2.0), ("flights in May", 1.0))
    [flight] = set(terms("flights"))
    assert weights[flight] == 2.0


def test_a_term_of_all_texts_tells_less_than_one_of_a_single_text() -> None:
    texts = [words((text, 1.0)) for text in ("airport jfk", "airport lga", "airport ewr")]
    telling = rarity(texts)
    assert telling["airport"] < telling["jfk"]
    assert overlap(texts[0], texts[1], telling) < 0.5
    assert overlap(texts[0], {**texts[0], **texts[1]}, telling) > 0.5


def test_keywords_are_the_most_frequent_terms() -> None:
    texts = ["airlines and carriers", "airlines of 2013", "airlines"]
    assert keywords(texts, 1) == terms("airlines")
