"""Generated clients need npm and its registry. Only with ./test --generated-client."""
import os

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/generated_client" in str(item.path) and "NODEPOOL_TEST_GENERATED_CLIENT" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="only with ./test --generated-client"))
