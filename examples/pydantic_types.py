"""Pydantic models and ``Field`` as parameters and results: ``isthmus run examples/pydantic_types.py``."""

from typing import Annotated

from pydantic import BaseModel, Field, field_validator

from isthmus import Server

server = Server("orders", version="1.0")


class Line(BaseModel):
    """One line of an order."""

    article: str
    count: int = Field(default=1, ge=1, description="How many.")

    @field_validator("article")
    @classmethod
    def known(cls, article: str) -> str:
        """Refuse articles that nobody sells."""
        if article not in {"tea", "cups"}:
            raise ValueError("there is only tea, and cups")
        return article


class Receipt(BaseModel):
    """What was ordered, and what it comes to."""

    lines: list[Line]
    total: float = Field(serialization_alias="totalEuro")


@server.tool
def order(
    lines: list[Line],
    discount: Annotated[float, Field(ge=0, le=0.5, description="0.1 is 10 %.")] = 0,
) -> Receipt:
    """Order tea, or cups to drink it from."""
    return Receipt(lines=lines, total=4 * sum(line.count for line in lines) * (1 - discount))


if __name__ == "__main__":
    server.run()
