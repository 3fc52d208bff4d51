"""The token in a service's folder, whatever a kill has left there."""

import stat

import pytest

from passnet_service.server import MIN_TOKEN_CHARACTERS, TOKEN_FILE, _kept_token


@pytest.mark.parametrize("left", [(), (TOKEN_FILE,)])
def test_a_token_is_made_unless_there_is_a_whole_one_and_is_kept_then(tmp_path, left):
    for name in left:
        (tmp_path / name).touch(0o600)
    token = _kept_token(tmp_path)
    assert len(token) >= MIN_TOKEN_CHARACTERS and _kept_token(tmp_path) == token
    assert [path.name for path in tmp_path.iterdir()] == [TOKEN_FILE]
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600
