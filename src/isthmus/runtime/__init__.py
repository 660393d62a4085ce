"""Where asyncio lives: peers, the router, and the seam that transports fill."""
