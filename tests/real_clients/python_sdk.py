"""Drives the server with the official Python SDK (`mcp`), in both protocol eras.

    python tests/real_clients/python_sdk.py INTERPRETER

Runs in an environment of its own that has `mcp`; INTERPRETER starts memory.py. Prints a line per
check and exits 1 when one fails. List, capture, search in Chinese, get, a failing call, a
cancellation.
"""

import os
import sys
import tempfile

import anyio
from mcp import Client, StdioServerParameters, stdio_client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)

from mcore.ops import OPERATIONS  # noqa: E402

TOOLS = {operation.tool for operation in OPERATIONS if operation.tool}
FAILED = []


def check(era, name, ok):
    print(f"{'PASS' if ok else 'FAIL'} python-sdk {era}: {name}")
    if not ok:
        FAILED.append(name)


async def drive(era, interpreter, home):
    server = StdioServerParameters(
        command=interpreter, args=[os.path.join(ROOT, "memory.py"), "mcp"], env={"MEMORY_AGENT_HOME": home}
    )
    async with Client(stdio_client(server), mode=era) as client:
        tools = await client.list_tools()
        check(era, "list", {tool.name for tool in tools.tools} == TOOLS)
        body = "ecs-prod 的 SSH 登录使用私钥认证，密钥由运维组保管。"
        saved = await client.call_tool("memory_capture", {"title": f"登录方式 {era}", "body": body})
        check(era, "capture", saved.structured_content["status"] == "created")
        found = await client.call_tool("memory_search", {"query": "私钥"})
        hits = found.structured_content["hits"]
        check(era, "search Chinese", f"登录方式 {era}" in {hit["title"] for hit in hits})
        card = await client.call_tool("memory_get", {"path": saved.structured_content["path"]})
        check(era, "get", body in card.structured_content["text"] and body in card.content[0].text)
        failed = await client.call_tool("memory_get", {"path": "no/such card.md"})
        check(era, "a failing call says so", failed.is_error and "no/such card.md" in failed.content[0].text)
        with anyio.move_on_after(0.001) as scope:
            await client.call_tool("memory_reindex", {"rebuild": True})
        stats = await client.call_tool("memory_stats", {})
        check(era, "usable after a cancellation", scope.cancelled_caught and stats.structured_content["total"] >= 1)


async def main(interpreter):
    with tempfile.TemporaryDirectory() as home:
        for era in ("legacy", "auto"):
            await drive(era, interpreter, home)


anyio.run(main, sys.argv[1])
sys.exit(1 if FAILED else 0)
