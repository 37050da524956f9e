from rasplens.compile import CompileError, UndefinedValue, rasp


def test_both_are_value_errors_and_a_compile_error_carries_its_expression():
    assert issubclass(CompileError, ValueError)
    assert issubclass(UndefinedValue, ValueError)
    assert CompileError("no", rasp.tokens).node is rasp.tokens
    assert CompileError("no").node is None
