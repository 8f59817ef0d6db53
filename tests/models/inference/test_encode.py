from __future__ import annotations

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.models.batch import Clips
from momentseek.models.inference.encode import encode_corpus, encode_queries
from momentseek.models.inputs import clips_of


def test_what_is_kept_is_what_the_model_gives_for_each_video(small):
    world, model = small.world(videos=12), small.model(max_clips=5)
    kept = encode_corpus(model, world, world.corpus, batch=4)
    assert kept.names == world.corpus
    assert kept.counts.tolist() == [min(5, world.rows(n)) for n in world.corpus]
    for i, name in enumerate(world.corpus):
        alone = model.encode_clips(clips_of(world, [name], model.config))
        assert kept.rows(i).keys() == alone.keys()
        for key, rows in kept.rows(i).items():
            assert np.array_equal(rows, alone[key][0].numpy()), key


def test_nothing_is_padded_in_what_is_kept(small):
    world, model = small.world(videos=12), small.model()
    kept = encode_corpus(model, world, world.corpus)
    clips = int(kept.counts.sum())
    lengths = {key: len(v) for key, v in kept.values.items()}
    assert lengths == {"mask": clips, "clip": clips, "sums": clips + 12, "total": 12, "count": 12}
    assert kept.nbytes == clips * 1 + 3 * 4 * (clips + clips + 12 + 12) + 8 * 12
    assert (kept.width, kept.fixed) == (7, 4)


def test_taking_pads_with_nothing(small):
    world, model = small.world(videos=12), small.model()
    kept = encode_corpus(model, world, world.corpus)
    index = np.array([3, 0, 3, 7])
    taken = kept.take(index)
    longest = kept.counts[index].max()
    for row, i in enumerate(index):
        count = kept.counts[i]
        assert taken["clip"].shape == (4, longest, 3)
        assert taken["mask"][row].tolist() == [True] * count + [False] * (longest - count)
        assert np.array_equal(taken["clip"][row, :count], kept.rows(i)["clip"])
        assert not taken["clip"][row, count:].any()
        assert np.array_equal(taken["sums"][row, : count + 1], kept.rows(i)["sums"])
        assert np.array_equal(taken["total"][row], kept.rows(i)["total"])


@pytest.mark.parametrize("fit", ["truncate", "stretch"])
def test_videos_of_one_length_need_no_padding(small, fit):
    """All as long as the model takes, so that it could not be asked how it treats padding."""
    world, model = small.world(videos=5, longest=1 if fit == "truncate" else 8), small.model(max_clips=1, fit=fit)
    kept = encode_corpus(model, world, world.corpus)
    assert kept.counts.tolist() == [1] * 5
    assert kept.take(np.array([4, 2]))["clip"].shape == (2, 1, 3)
    alone = model.encode_clips(clips_of(world, world.corpus[2:3], model.config))
    for key, rows in kept.rows(2).items():
        assert np.array_equal(rows, alone[key][0].numpy()), key


def test_queries_are_kept_without_padding(small):
    world, model = small.world(queries=6), small.model(max_words=3)
    kept = encode_queries(model, world, world.truth.query_ids)
    assert kept.counts.tolist() == [min(3, world.query.rows(q)) for q in world.truth]
    assert len(kept.values["word"]) == kept.counts.sum()


def test_a_tensor_that_grows_elsewhere_is_refused(small):
    world, model = small.world(), small.model()
    encode = model.encode_clips

    def square(clips: Clips):
        kept = encode(clips)
        return kept | {"square": kept["clip"] @ kept["clip"].mT}

    model.encode_clips = square  # type: ignore[method-assign]
    with pytest.raises(MomentseekError, match="'square' grows with clips in axis 2"):
        encode_corpus(model, world, world.corpus)


def test_an_empty_corpus_is_refused(small):
    with pytest.raises(MomentseekError, match="no videos to encode"):
        encode_corpus(small.model(), small.world(), ())
