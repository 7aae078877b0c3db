// Steps as data with the TypeScript SDK 1.x: node steps_ts.mjs {server}, also a URL.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const { steps } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
const can = { roots: { listChanged: true }, sampling: {}, elicitation: {} };
const client = new Client({ name: "steps-ts", version: "1" }, { capabilities: can });
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///work" }] }));
client.setRequestHandler(CreateMessageRequestSchema, () => ({
  role: "assistant", content: { type: "text", text: "something" }, model: "none",
}));
client.setRequestHandler(ElicitRequestSchema, (request) => {
  const fields = Object.entries(request.params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map(([k, v]) => [k, v.default])) };
});
const [command, ...args] = process.argv.slice(2);
const transport = command.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: process.env });
await client.connect(transport);
for (const one of steps) {
  if (one.list) {
    let cursor;
    do {
      cursor = (await client.listTools(cursor === undefined ? {} : { cursor })).nextCursor;
    } while (cursor !== undefined);
    continue;
  }
  const options = one.progress ? { onprogress: () => {} } : {};
  if (one.cancel) options.signal = AbortSignal.timeout(one.cancel * 1000);
  const call = { name: one.call, arguments: { a: one.a, b: one.b } };
  try {
    await client.callTool(call, undefined, options);
  } catch (error) {
    if (!one.cancel && !one.fails) throw error;
  }
}
await transport.terminateSession?.();
await client.close();
