"""The MCP door: tools/call on stdio -> operation -> answer, for both eras of the protocol.

In import order; what a tool call needs is imported with the first one, so that the first answer is cheap:

    answers   an operation as a tool entry; its result or failure as a call's result; no I/O
    session   what each message means, in the handshake era and in the stateless one; no I/O
    wires     the two descriptors: taken out of everyone's reach, and written by one thread
    lanes     the running calls: which may start, which is cancelled; threads, no protocol
    worker    one call carried out: arguments, App, failure, progress
    keeper    looks for changed files beside the calls when the vault is large
    shell     the process: reading, signals, the end
"""

from mcore.mcp_server.shell import serve

__all__ = ["serve"]
