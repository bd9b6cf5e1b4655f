"""Queries `crawl mcp` with the client of the protocol's Python SDK.

Arguments: the program, the crawl's directory, the origin of its pages.
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ANSWER_SECONDS = 60


async def main(program, directory, origin):
    server = StdioServerParameters(command=program, args=["mcp", directory])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        assert started.server_info.name == "crawl", started
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"search", "page", "sections", "explain", "report"}, tools
        assert all(tool.annotations.read_only_hint for tool in tools.values()), tools

        async def ask(name, **arguments):
            answer = await session.call_tool(name, arguments, read_timeout_seconds=ANSWER_SECONDS)
            return answer.is_error, answer.content[0].text, answer.structured_content

        error, text, data = await ask("search", query="leaves")
        assert not error and [page["url"] for page in data["results"]] == [f"{origin}/tea"], data
        assert data["refused"] == 1, data
        error, text, data = await ask("page", url=f"{origin}/tea")
        assert not error and text.startswith("# Green tea\n\nSteamed leaves"), text
        assert data["next"] is None and data["characters"] == len(data["markdown"]), data
        error, text, data = await ask("sections", url=f"{origin}/tea")
        assert [section["heading"] for section in data["sections"]] == ["Green tea", "Water"], data
        error, text, data = await ask("sections", url=f"{origin}/tea", heading="water")
        assert "seventy degrees" in data["sections"][0]["text"], data
        error, text, data = await ask("explain", url=f"{origin}/refused")
        assert not error and data["state"] == "fetched" and "Secret" not in text + str(data), data
        error, text, data = await ask("report")
        assert not error and data["pages"]["total"] >= 4, data
        for name, arguments, message in [
            ("page", {"url": f"{origin}/refused"}, "ai-input"),
            ("sections", {"url": f"{origin}/refused"}, "ai-input"),
            ("page", {"url": f"{origin}/silent"}, "nosnippet"),
            ("sections", {"url": f"{origin}/silent"}, "nosnippet"),
            ("page", {"url": f"{origin}/hidden"}, "isn't in the index"),
            ("page", {"url": "tea"}, "unusable URL"),
            ("page", {}, "missing field `url`"),
        ]:
            error, text, data = await ask(name, **arguments)
            assert error and message in text and data is None, (name, arguments, text)
    print(len(tools))


asyncio.run(main(*sys.argv[1:]))
