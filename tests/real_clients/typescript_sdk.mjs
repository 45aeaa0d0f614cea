// Drives the server with the official TypeScript SDK.
//   node typescript_sdk.mjs INTERPRETER MEMORY_PY HOME   (run where @modelcontextprotocol/sdk is installed)
// Prints a line per check and exits 1 when one fails.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [interpreter, program, home] = process.argv.slice(2);
let failed = 0;
const check = (name, ok) => {
  console.log(`${ok ? "PASS" : "FAIL"} typescript-sdk: ${name}`);
  if (!ok) failed += 1;
};

const client = new Client({ name: "ci", version: "1" });
await client.connect(
  new StdioClientTransport({ command: interpreter, args: [program, "mcp"], env: { ...process.env, MEMORY_AGENT_HOME: home } }),
);
const { tools } = await client.listTools();
check("list", tools.length === 10 && tools.every((tool) => tool.name.startsWith("memory_")));
const body = "ecs-prod 的 SSH 登录使用私钥认证，密钥由运维组保管。";
const saved = await client.callTool({ name: "memory_capture", arguments: { title: "登录方式 ts", body } });
check("capture", saved.structuredContent.status === "created");
const found = await client.callTool({ name: "memory_search", arguments: { query: "私钥" } });
check("search Chinese", found.structuredContent.hits.some((hit) => hit.title === "登录方式 ts"));
const card = await client.callTool({ name: "memory_get", arguments: { path: saved.structuredContent.path } });
check("get", card.structuredContent.text.includes(body) && card.content[0].text.includes(body));
const wrong = await client.callTool({ name: "memory_get", arguments: { path: "no/such card.md" } });
check("a failing call says so", wrong.isError === true);
const controller = new AbortController();
setTimeout(() => controller.abort(), 1);
const cancelled = await client
  .callTool({ name: "memory_reindex", arguments: { rebuild: true } }, undefined, { signal: controller.signal })
  .then(() => false, () => true);
const stats = await client.callTool({ name: "memory_stats", arguments: {} });
check("usable after a cancellation", cancelled && stats.structuredContent.total >= 1);
await client.close();
process.exit(failed ? 1 : 0);
