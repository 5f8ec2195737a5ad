"""Secrets are found in every form they are written in, and nothing else is touched."""

from __future__ import annotations

import json
import tomllib

import pytest

from r8.sensitive import MASK, masked, masked_json, secrets_in
from r8.tests.seal.planted import NEEDLES, PHRASES, SECRET_KINDS

PEM = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nAAABBB==\n"
    "-----END OPENSSH PRIVATE KEY-----\nINFO started\n"
)


@pytest.mark.parametrize(
    ("phrase", "needle"),
    [pair for kind in SECRET_KINDS for pair in zip(PHRASES[kind], NEEDLES[kind], strict=True)]
    + [
        ("non-default args: {'api_key': ['abc123secret'], 'port': 1}", "abc123secret"),
        ('command = ["vllm", "--api-key", "abcDEF123"]', "abcDEF123"),
        ('{"detail": "{\\"password\\": \\"x1y2z3\\"}"}', "x1y2z3"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("export HF_TOKEN=mytoken", "mytoken"),
        ("X-Api-Key: 9f8e7d", "9f8e7d"),
        ("mount -o username=u,password=pass99word //filer/x", "pass99word"),
        ("curl -u admin:s3cr3tpw http://x", "s3cr3tpw"),
        ("sshpass -p hunter2 ssh x", "hunter2"),
        ("mysql -h db -psecretpw", "secretpw"),
        ("proxy: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ('{"auth": "dXNlcjpwYXNzd29yZA=="}', "dXNlcjpwYXNzd29yZA"),
        ("SharedAccessSignature sv=1&sig=Zm9vYmFyYmF6", "Zm9vYmFyYmF6"),
        ("aws_session_token=IQoJb3JpZ2luX2Vj", "IQoJb3JpZ2luX2Vj"),
        (PEM, "b3BlbnNzaC1rZXktdjE"),
        (json.dumps(PEM), "b3BlbnNzaC1rZXktdjE"),
    ],
)
def test_a_secret_is_found_and_replaced(phrase: str, needle: str) -> None:
    text = f"first line\n{phrase}\nlast line\n"
    assert {line for line, _ in secrets_in(text)} == {2}
    hidden = masked(text)
    assert needle not in hidden
    assert MASK in hidden
    assert hidden.startswith("first line\n")
    assert hidden.endswith("last line\n")
    assert list(secrets_in(hidden)) == []


@pytest.mark.parametrize(
    "text",
    [
        *('api_key_env = "VLLM_API_KEY"', "prompt_tokens: 788", "api_key: None", "token: 5"),
        *("eos_token='</s>', pad_token: '<pad>'", "Total tokens 788, need to load: 4"),
        *("password=${PW}", "--api-key {key}", "hf_overrides={}, hf_token=None", "keys=4"),
        *("http://127.0.0.1:8000/metrics", "tokenizer='x' tokenizer_mode=auto", "secret-tool"),
        *("docker run -u 1000:1000 x", "basic authentication", "auth=sys,vers=4.2", "sigma=0.1"),
        *("task-force-0123456789abcdef", "the token is missing", "bearer of news", "pwd"),
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n",
        f"HF_TOKEN={MASK}",
    ],
)
def test_what_is_no_secret_stays_byte_for_byte(text: str) -> None:
    assert masked(text) == text
    assert list(secrets_in(text)) == []


@pytest.mark.parametrize(
    "said",
    [
        *("curl -u admin:s3cr3tpw", "mysql -psecretpw", "sshpass -p hunter2", "Cookie: a=b1"),
        *("http://u:s3cr3t@h", "Authorization: Basic dXNlcjpwYXNz", "password=Tr0ub4dor&3", PEM),
    ],
)
def test_json_and_toml_stay_what_they_are(said: str) -> None:
    for text in (
        json.dumps({"a": [said], "b": json.dumps({"c": said})}),
        f"a = {json.dumps(said)}",
    ):
        hidden = masked(text)
        assert hidden != text
        read = tomllib.loads if text.startswith("a =") else json.loads
        assert set(read(hidden)) == set(read(text))
    assert json.loads(json.loads(masked(json.dumps({"b": json.dumps({"c": said})})))["b"])["c"]


def test_a_key_names_its_value_in_json_whatever_its_form() -> None:
    said = {"env": {"HF_TOKEN": "a b", "PATH": "/bin"}, "argv": ["x", "sk-proj-9fA7c2LmQ4vX8zT1"]}
    assert masked_json(said) == {"env": {"HF_TOKEN": MASK, "PATH": "/bin"}, "argv": ["x", MASK]}
