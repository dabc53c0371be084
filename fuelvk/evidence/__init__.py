"""What has been measured: records of verified claims, one ledger file per device and driver.

``Book`` reads the ledgers that ship with fuelvk and the user's own; ``update`` adds records to one. Imports nothing of
fuelvk but ``base``, so that routing can ask what is proven.
"""

from __future__ import annotations

from fuelvk.evidence.books import Book, book, forget, ledger_dir, shipped_dir
from fuelvk.evidence.ledger import Ledger, merge, read, update, writable
from fuelvk.evidence.records import CLAIMS, Place, Record

__all__ = [
    "CLAIMS",
    "Book",
    "Ledger",
    "Place",
    "Record",
    "book",
    "forget",
    "ledger_dir",
    "merge",
    "read",
    "shipped_dir",
    "update",
    "writable",
]
