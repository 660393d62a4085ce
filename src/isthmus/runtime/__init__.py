"""Runtime: peers, the router, and the seam that transports fill. Here asyncio begins."""
