// Bundles the apps, each into a folder of its name within the folder in the argument.
import { copyFile, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { compile } from "svelte/compiler";
import { compileScript, parse } from "vue/compiler-sfc";

const out = process.argv[2];

/** Compiles the files with this ending by `toScript(source, path)`. */
const components = (ending, toScript) => ({
  name: ending,
  setup: (bundler) =>
    bundler.onLoad({ filter: new RegExp(`\\.${ending}$`) }, async ({ path }) => ({
      contents: toScript(await readFile(path, "utf8"), path),
    })),
});

const svelte = components("svelte", (source, filename) =>
  compile(source, { filename, generate: "client", css: "injected" }).js.code);

const vue = components("vue", (source, filename) =>
  compileScript(parse(source, { filename }).descriptor, { id: basename(filename), inlineTemplate: true }).content);

for (const [app, main] of [["react", "main.jsx"], ["vue", "main.js"], ["svelte", "main.js"]]) {
  await build({
    entryPoints: [join(app, main)],
    outdir: join(out, app, "assets"),
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    jsx: "automatic",
    conditions: ["svelte", "browser", "production"],
    define: {
      "process.env.NODE_ENV": '"production"',
      __VUE_OPTIONS_API__: "false",
      __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
    plugins: [svelte, vue],
    logLevel: "warning",
  });
  await copyFile(join(app, "index.html"), join(out, app, "index.html"));
}
