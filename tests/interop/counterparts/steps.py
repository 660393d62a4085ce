"""The script that every client here plays: a list of steps in, a list of outcomes out.

``CLIENT PLAN`` gets one JSON object: ``transport`` (``stdio``, ``http`` or ``sse``), ``target`` (a
command or a URL), ``revision`` and ``steps``; it prints one, ``{"revision": …, "outcomes": […]}``.
A step is a list: a verb and its arguments. The verbs are the methods that a :class:`Player` and
its subclasses have; an error of the protocol becomes ``{"code": …}``, another ``{"raised": …}``.
Only the standard library is needed here: other people's interpreters run it.
"""

import asyncio
import json
import sys

ROW = {"row": 7}
THOUGHT = "A thought."
ROOT = "file:///work"
SECONDS = 15


class Player:
    """What has been heard so far, and the steps that wait for it."""

    def __init__(self, plan):
        self.plan = plan
        self.heard = {"logs": [], "changes": []}
        self.news = asyncio.Event()
        self.deaf = False

    def hears(self, kind, what):
        """Take note of a log message or a change; once of each."""
        if isinstance(what, dict) and "msg" in what:
            what = what["msg"]  # a library that puts every text into an object
        if what not in self.heard[kind]:
            self.heard[kind].append(what)
        self.news.set()

    async def until(self, heard):
        """Wait for news until this is true."""
        while not heard():
            self.news.clear()
            await self.news.wait()

    async def logs(self, count):
        """The log messages, once there are so many."""
        await self.until(lambda: len(self.heard["logs"]) >= count)
        return sorted(self.heard["logs"])

    async def changed(self, what):
        """Wait until a change is heard of."""
        if self.deaf:
            raise LookupError("nothing can be heard: the step before failed")
        await self.until(lambda: what in self.heard["changes"])
        return what

    async def cancel(self, name, arguments):
        """Call a tool and cancel the call when its first progress comes."""
        begun = asyncio.Event()
        task = asyncio.ensure_future(self.call(name, arguments, begun.set))
        task.add_done_callback(lambda _: begun.set())
        await begun.wait()
        if task.done():
            return await task
        await self.stop(task)
        await asyncio.wait([task])
        return "cancelled" if task.cancelled() or task.exception() else task.result()

    async def stop(self, task):
        """Cancel a call; how differs."""
        task.cancel()

    def code(self, error):
        """The code of an error of the protocol, None for any other."""
        return getattr(error, "code", None)

    async def play(self):
        """Each step's outcome."""
        outcomes = []
        for verb, *arguments in self.plan["steps"]:
            self.deaf = self.deaf and verb != "hear"
            try:
                async with asyncio.timeout(SECONDS):
                    outcomes.append(await getattr(self, verb)(*arguments))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
                self.deaf = self.deaf or verb == "hear"
                code = self.code(error)
                raised = f"{type(error).__name__}: {error}"
                outcomes.append({"raised": raised} if code is None else {"code": code})
        return outcomes


def told(text, *, error, progress):
    """The outcome of a call."""
    return {"text": text, "error": bool(error), "progress": progress}


def plan():
    """What the command line asks for."""
    return json.loads(sys.argv[-1])


def report(revision, outcomes):
    """Say what came of it."""
    print(json.dumps({"revision": revision, "outcomes": outcomes}))
