from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from router.route import Router
from serve.app import create_app
from serve.settings import Settings

Serve = Callable[..., TestClient]


@pytest.fixture
def serving(toy_router: Router) -> Iterator[Serve]:
    """Starts a service over a router (the toy one by default) with the settings given."""
    clients: list[TestClient] = []

    def start(router: Router | None = None, **settings: object) -> TestClient:
        client = TestClient(create_app(Settings(**settings), router=router or toy_router))
        clients.append(client.__enter__())
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serving: Serve) -> TestClient:
    return serving()
