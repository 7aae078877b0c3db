"""HTTP servers that break a rule of http/cards."""

import json
from typing import Any, ClassVar

from reference_server.protocol.identity import NAME, VERSION
from tests.mutants.http_kit import BEARER, TOKEN, Extra, HttpFault, WithoutHandshake
from tests.mutants.kit import LEGACY, MODERN, Json, control, drops, edits, has, mutants, puts

CARD = "/mcp/server-card"
CATALOG = "/.well-known/ai-catalog.json"
KIND, KIND_OF_CATALOG = "application/mcp-server-card+json", "application/ai-catalog+json"
TAG = '"card-1"'
OPEN: Extra = {
    "Content-Type": KIND,
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match",
    "Access-Control-Expose-Headers": "ETag",
    "Cache-Control": "public, max-age=3600",
    "ETag": TAG,
}
REMOTE = ("remotes", 0)
SECRET: Json = {"name": "X-Api-Key", "isSecret": True, "value": "k"}


def keeps(_found: Any) -> None:
    """Change nothing."""


class PublishesCard(HttpFault):
    """Our HTTP server with a card and a catalog."""

    said: ClassVar[Extra] = OPEN
    spoils: ClassVar[Any] = staticmethod(keeps)
    spoils_entry: ClassVar[Any] = staticmethod(keeps)
    catalog: ClassVar[str] = KIND_OF_CATALOG
    honours = True
    versions: ClassVar[tuple[str, ...]] = ("2025-03-26", "2025-06-18", LEGACY)

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        """Answer with the card or the catalog, or as our server."""
        url = f"http://{self.header('Host')}/mcp"
        if self.path == CARD and self.honours and self.header("If-None-Match") == TAG:
            self.answer(304, b"", self.said)
        elif self.path == CARD:
            remote = {"type": "streamable-http", "url": url}
            card: Json = {
                "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
                "name": f"com.example/{NAME}",
                "version": VERSION,
                "description": "Reads files.",
                "remotes": [{**remote, "supportedProtocolVersions": [*self.versions]}],
            }
            self.spoils(card)
            self.answer(200, json.dumps(card).encode(), self.said)
        elif self.path == CATALOG:
            entry: Json = {"identifier": "urn:air:example.com:mcp:a", "type": KIND, "url": url}
            self.spoils_entry(entry)
            body = json.dumps({"specVersion": "1.0", "entries": [entry]}).encode()
            self.answer(200, body, {"Content-Type": self.catalog})
        else:
            super().do_GET()


class PublishesCardWithoutHandshake(PublishesCard, WithoutHandshake):
    """The same in front of a server without a handshake."""

    versions: ClassVar[tuple[str, ...]] = (MODERN,)


EACH = (
    "cards-media-type",
    "cards-document",
    "cards-version-exact",
    "cards-cors",
    "cards-cache-control",
    "cards-etag",
    "cards-not-modified",
    "cards-same-server",
    "cards-same-transport",
    "cards-no-credentials",
    "cards-catalog-entry",
    "cards-catalog-type",
    "cards-same-versions",
)


@control(*EACH[:-1])
class HasCard(PublishesCard):
    """Publishes a card as it should."""


@control(*EACH, revision=MODERN)
class HasCardWithoutHandshake(PublishesCardWithoutHandshake):
    """Publishes a card as it should, and speaks 2026-07-28 only."""


mutants("cards-media-type", "cards-cors", "cards-cache-control", "cards-etag", of=PublishesCard)(
    SendsCardAsJson=has("Has no header for its card.", said={"Content-Type": "application/json"})
)
mutants("cards-document", "cards-version-exact", "cards-same-server", of=PublishesCard)(
    HasOutdatedCard=has(
        "Has a card with a range of versions only.",
        spoils=edits(puts("version", "^0.0"), drops("description")),
    )
)
mutants("cards-not-modified", "cards-same-transport", "cards-no-credentials", of=PublishesCard)(
    HasCarelessCard=has(
        "Has a secret in its card, and endpoints that it does not serve.",
        honours=False,
        spoils=edits(puts(*REMOTE, "type", "sse"), puts(*REMOTE, "headers", [SECRET])),
    )
)
mutants("cards-catalog-entry", "cards-catalog-type", of=PublishesCard)(
    HasOddCatalog=has(
        "Has a url and the data in its catalog.",
        catalog="application/json",
        spoils_entry=puts("data", {}),
    )
)
mutants("cards-cors", of=PublishesCard, outcome="warn")(
    HidesTagOfCard=has(
        "Does not expose the ETag of its card.",
        said={k: v for k, v in OPEN.items() if k != "Access-Control-Expose-Headers"},
    )
)
mutants("cards-document", "cards-same-versions", of=PublishesCardWithoutHandshake, revision=MODERN)(
    HasCardOfTheFuture=has(
        "Has a revision in its card that it does not speak, and a name without a namespace.",
        versions=(MODERN, "2099-01-01"),
        spoils=puts("name", NAME),
    )
)
mutants("cards-document", "cards-no-credentials", of=PublishesCard)(
    HasCardWithToken=has(
        "Has the token of the user in its card.",
        headers_sent={"Authorization": TOKEN},
        spoils=edits(
            puts("websiteUrl", f"https://a.example/?{BEARER}"), puts(*REMOTE, "headers", {})
        ),
    )
)
mutants("cards-catalog-entry", of=PublishesCard)(
    HasCatalogWithoutIdentifier=has(
        "Has no identifier in its catalog.", spoils_entry=drops("identifier")
    )
)
