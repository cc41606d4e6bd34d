"""verl's TransferQueue in memory: what one process writes it reads again, without Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


class MemoryQueue:
    """Rows by key, each a mapping of columns."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self.rows = rows

    def get(self, keys: list[str], partition_id: str, select_fields: list[str]) -> Any:
        """Return columns as TransferQueue gives them: tensors nested, the rest stacked; absent ones left out."""
        import torch
        from tensordict import TensorDict
        from tensordict.tensorclass import NonTensorStack

        columns: dict[str, Any] = {}
        for name in select_fields:
            values = [self.rows[key].get(name) for key in keys]
            if isinstance(values[0], torch.Tensor):
                columns[name] = torch.nested.nested_tensor(values, layout=torch.jagged)
            elif values[0] is not None:
                columns[name] = NonTensorStack(*values)
        return TensorDict(columns, batch_size=len(keys))

    def put(self, keys: list[str], partition_id: str, fields: Any = None, tags: Any = None) -> Any:
        """Write columns."""
        from transfer_queue import KVBatchMeta

        for name in fields.keys():  # noqa: SIM118
            for key, value in zip(keys, fields[name].unbind(), strict=True):
                self.rows[key][name] = value.clone()
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{} for _ in keys])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand in for TransferQueue within the body."""
        import transfer_queue as tq

        with patch.object(tq, "kv_batch_get", self.get), patch.object(tq, "kv_batch_put", self.put):
            yield
