"""Ways down a loss, and how long they are followed."""

import itertools

import numpy as np
import pytest
import torch

from rasplens.compare.claims.interchange.descent import MOST_TIMES, first_order, followed, second_order

START = np.random.default_rng(0).normal(size=(2, 4, 3))
WANTED = np.random.default_rng(1).normal(size=(2, 4, 3))
SLOPES = np.array([100.0, 10.0, 1.0, 0.0])[None, :, None]
"""Along the last axis there is no slope at all."""


def bowl(turned, noise=0.0):
    """A loss with slopes of all sizes along axes that are turned; rounding, if any, along all."""
    rounding = torch.as_tensor(noise * np.random.default_rng(2).normal(size=START.shape))

    def loss(coordinates):
        own = torch.as_tensor(turned.T) @ coordinates
        return (torch.as_tensor(SLOPES) * (own - torch.as_tensor(WANTED)) ** 2).sum() + (rounding * own).sum()

    return loss


@pytest.mark.parametrize("way", [first_order, second_order])
def test_a_way_goes_down_and_turns_with_its_axes(way):
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))[0]
    own, other = (list(itertools.islice(way(bowl(axes), axes @ START), 12)) for axes in (np.eye(4), turned))
    for mine, theirs in zip(own, other, strict=True):
        np.testing.assert_allclose(turned @ mine, theirs, atol=1e-6)
    begin, end = (float(bowl(np.eye(4))(torch.tensor(at))) for at in (START, own[-1]))
    assert end < begin / 2


@pytest.mark.parametrize("way", [first_order, second_order])
def test_rounding_alone_leads_nowhere(way):
    """Along the axis without a slope; Adam itself, the negative control, steps there as far as anywhere."""
    found = list(itertools.islice(way(bowl(np.eye(4), noise=1e-9), START), 10))[-1]
    np.testing.assert_allclose(found[:, 3], START[:, 3], atol=1e-6)
    now = torch.tensor(START, requires_grad=True)
    adam = torch.optim.Adam([now], lr=0.05)
    for _ in range(10):
        adam.zero_grad()
        bowl(np.eye(4), noise=1e-6)(now).backward()
        adam.step()
    assert np.abs(now.detach().numpy()[:, 3] - START[:, 3]).max() > 0.1


def test_a_way_that_stands_still_ends():
    assert list(second_order(bowl(np.eye(4)), np.where(SLOPES > 0, WANTED, START))) == []


def numbered(scores):
    return (np.array([float(i)]) for i in range(1, len(scores))), np.zeros(1), lambda at: scores[int(at[0])]


def test_a_path_is_followed_while_it_gets_better():
    better = [0.1 * min(i, 40) for i in range(1000)]
    end = followed(*numbered(better), steps=10)
    assert (end.best[0], end.last[0]) == (40, 50)
    end = followed(*numbered([i / 10_000 for i in range(1000)]), steps=10)  # by hardly anything
    assert (end.best[0], end.last[0]) == (10, 10)
    end = followed(*numbered([float(i) for i in range(1000)]), steps=10)
    assert end.last[0] == MOST_TIMES * 10


@pytest.mark.parametrize("length", [1, 3, 9])
def test_the_end_of_a_path_that_stops_by_itself_is_scored(length):
    end = followed(*numbered([float(i) for i in range(length + 1)]), steps=20)
    assert (end.best[0], end.score, end.last[0]) == (length, length, length)


def test_what_was_best_is_kept():
    end = followed(*numbered([0.0] * 5 + [1.0] + [0.0] * 100), steps=20)
    assert (end.best[0], end.last[0]) == (5, 25)
    end = followed(*numbered([1.0] + [0.0] * 100), steps=20)
    assert (end.best[0], end.last[0]) == (0, 20)
    end = followed(*numbered([0.0, 1.0]), steps=0)
    assert (end.best[0], end.last[0]) == (0, 0)
