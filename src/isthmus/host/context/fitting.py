"""Fitting of context pieces into a budget of tokens.

Each server may take its share of the budget and no more, in the order of rank; the first of its
pieces that does not fit is cut, and the server's turn is over. Because the order does not depend on
the budget and every share grows with it, a larger budget keeps all that a smaller one had.
"""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct, structs

from isthmus.host.context.pieces import ContextManifest, ContextPiece, PlacedPiece, rank_pieces
from isthmus.host.model.framing import frame_text
from isthmus.host.model.tokens import TokenCounter

MIN_CUT_TOKENS = 48  # a shorter rest says nothing any more
HEAD_SHARE = 0.7  # of a cut text, the part from its beginning; the rest is from its end
MEDIA_TOKENS = 1_500  # of a picture or a sound, with most models


class FittedContext(Struct, frozen=True):
    """The pieces that fit.

    Attributes:
        texts: each in its frame, in the order of rank.
        pieces: the same without frames, cut as they are.
        media: pictures and sounds that are included.
        manifest: every candidate and what became of it.
    """

    texts: tuple[str, ...]
    pieces: tuple[ContextPiece, ...]
    media: tuple[ContextPiece, ...]
    manifest: ContextManifest


def fit_pieces(
    pieces: Sequence[ContextPiece],
    budget: int,
    counter: TokenCounter,
    *,
    query: str = "",
    share: float = 0.5,
    media: bool = False,
) -> FittedContext:
    """Choose pieces that fit into a budget.

    Args:
        pieces: the candidates, their secrets taken out already.
        budget: tokens there are.
        counter: counts them.
        query: what it is for; decides the rank together with what servers say.
        share: how much of the budget one server may take, from 0 to 1; what is pinned counts for
            none.
        media: whether pictures and sounds are included.
    """
    return ContextFitter(budget, counter, share, media).run(rank_pieces(pieces, query))


class ContextFitter:
    """One fitting, as far as it has come.

    What is charged for a piece that does not fit is all the room that there was for it, also where
    the cut piece takes less: so nobody gets with a small budget what a larger one would deny them.

    Args:
        budget, counter, share, media: as for :func:`fit_pieces`.
    """

    def __init__(self, budget: int, counter: TokenCounter, share: float, media: bool) -> None:
        self.budget = max(0, budget)
        self.counter = counter
        self.share = share
        self.media = media
        self.charged = 0.0
        self.by_server: dict[str, float] = {}
        self.full: set[str] = set()
        self.over = False
        self.seen: dict[str, str] = {}
        self.texts: list[str] = []
        self.pieces: list[ContextPiece] = []
        self.pictures: list[ContextPiece] = []

    def run(self, candidates: Sequence[tuple[ContextPiece, float]]) -> FittedContext:
        """Place the candidates in the order of rank."""
        placed = tuple(self.place(piece, score) for piece, score in candidates)
        manifest = ContextManifest(
            placed=placed,
            tokens=sum(one.tokens for one in placed),
            budget=self.budget,
            counter=self.counter.name,
        )
        pieces, pictures = tuple(self.pieces), tuple(self.pictures)
        return FittedContext(tuple(self.texts), pieces, pictures, manifest)

    def place(self, piece: ContextPiece, score: float) -> PlacedPiece:
        """Include one piece, whole or in part, or drop it with a reason."""
        of = MEDIA_TOKENS if piece.media else self.size(piece, piece.text)
        why_not = self.find_exclusion(piece)
        state, tokens, reason = ("dropped", 0, why_not) if why_not else self.include(piece, of)
        return PlacedPiece(
            server=piece.server,
            uri=piece.uri,
            title=piece.title,
            kind=piece.kind,
            state=state,  # type: ignore[arg-type]  # one of the three words
            tokens=tokens,
            of=of,
            reason=reason,
            score=score,
        )

    def find_exclusion(self, piece: ContextPiece) -> str:
        """The reason why a piece is not even tried; empty where it is."""
        if piece.audience and "assistant" not in piece.audience:
            return "its server means it for the user alone"
        if piece.media and not self.media:
            return f"{piece.mime_type} is not wanted"
        own = f"{piece.server} {piece.uri}"
        digest = sha256(piece.text.encode("utf-8", "surrogatepass")).hexdigest()
        before = self.seen.setdefault(digest, own)
        if before != own:
            return f"the same as {before}"
        if self.over:
            return "the budget is used up"
        if piece.server in self.full and piece.kind != "pinned":
            return "its server's share of the budget is used up"
        return ""

    def include(self, piece: ContextPiece, of: int) -> tuple[str, int, str]:
        """Include a piece as far as there is room: its state, its tokens, and the reason."""
        room, shared = self.room(piece)
        self.charge(piece, min(of, room))
        if of <= room:
            self.keep(piece, piece.text)
            return "included", of, explain_inclusion(piece)
        if shared:
            self.full.add(piece.server)
        else:
            self.over = True
        whose = "its server's share" if shared else "the budget"
        reason = f"{of} tokens, and {int(room)} of {whose} were left"
        cut = None if piece.media else self.cut(piece, int(room))
        if cut is None:
            return "dropped", 0, reason
        self.keep(piece, cut)
        return "truncated", self.size(piece, cut), reason

    def room(self, piece: ContextPiece) -> tuple[float, bool]:
        """The tokens that a piece may take, and whether its server's share bounds them."""
        left = self.budget - self.charged
        if piece.kind == "pinned":
            return left, False
        own = self.budget * self.share - self.by_server.get(piece.server, 0.0)
        return (own, True) if own < left else (left, False)

    def charge(self, piece: ContextPiece, tokens: float) -> None:
        """Take tokens off the budget."""
        self.charged += tokens
        if piece.kind != "pinned":
            self.by_server[piece.server] = self.by_server.get(piece.server, 0.0) + tokens

    def keep(self, piece: ContextPiece, text: str) -> None:
        """Add a piece to the included ones."""
        if piece.media:
            self.pictures.append(piece)
        else:
            self.pieces.append(structs.replace(piece, text=text))
            self.texts.append(frame_text(piece.server, piece.uri, text))

    def size(self, piece: ContextPiece, text: str) -> int:
        """Tokens of a text in its frame."""
        return self.counter.count(frame_text(piece.server, piece.uri, text))

    def cut(self, piece: ContextPiece, room: int) -> str | None:
        """Cut a text to the most that fits of its beginning and end; None where that is nothing."""
        if room < MIN_CUT_TOKENS:
            return None
        low, high = 0, len(piece.text)
        while low < high:  # the longest that fits
            middle = (low + high + 1) // 2
            if self.size(piece, truncate_middle(piece.text, middle)) <= room:
                low = middle
            else:
                high = middle - 1
        return truncate_middle(piece.text, low) if low else None


def truncate_middle(text: str, length: int) -> str:
    """Cut the middle out of a text, and say how much is missing."""
    if length >= len(text):
        return text
    head = int(length * HEAD_SHARE) or length
    tail = length - head
    left_out = len(text) - length
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def explain_inclusion(piece: ContextPiece) -> str:
    """Explain why a piece is included."""
    return {"pinned": "pinned", "app": "what the app says last"}.get(piece.kind, "by its rank")
