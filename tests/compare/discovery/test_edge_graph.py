import pytest

from rasplens.compare.discovery.edge_graph import edge_graph
from rasplens.errors import RaspLensError
from rasplens.model import Config


def config(**changes):
    sizes = {"n_layers": 1, "n_heads": 1, "d_model": 4, "d_head": 4, "n_ctx": 3, "d_vocab": 2, "d_vocab_out": 2}
    return Config(**{**sizes, **changes})


def test_a_layer_of_one_head_by_hand():
    assert edge_graph(config()).edges == (
        "embed->L0H0.q", "pos_embed->L0H0.q",
        "embed->L0H0.k", "pos_embed->L0H0.k",
        "embed->L0H0.v", "pos_embed->L0H0.v",
        "embed->logits", "pos_embed->logits", "L0H0->logits",
    )  # fmt: skip


def test_an_mlp_reads_the_heads_of_its_layer_and_positions_beside_the_stream_send_nothing():
    graph = edge_graph(config(d_mlp=4, positions="rotary"))
    assert graph.senders == ("embed", "L0H0", "L0 MLP")
    assert {"L0H0->L0 MLP", "L0 MLP->logits"} <= set(graph.edges)
    assert graph.from_embeddings.tolist() == [True, True, True, True, False, True, False, False]


def test_edges_touch_the_nodes_at_their_ends():
    graph = edge_graph(config(d_mlp=4, positions="rotary"))
    touching = [edge for edge, is_there in zip(graph.edges, graph.touching(["L0 MLP"]), strict=True) if is_there]
    assert touching == ["embed->L0 MLP", "L0H0->L0 MLP", "L0 MLP->logits"]
    assert not graph.touching([]).any()


def test_edges_that_are_none_are_refused():
    with pytest.raises(RaspLensError, match=r"'L5H0->logits'.*'embed->"):
        edge_graph(config()).mask_of(["L0H0->logits", "L5H0->logits"])
