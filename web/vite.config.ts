import { defineConfig } from "vite";

// The daemon to develop against: its address, and its token for the proxy to send along.
const daemon = process.env.HATCHERY_URL ?? "http://127.0.0.1:4173";
const token = process.env.HATCHERY_TOKEN;

export default defineConfig({
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { output: { entryFileNames: "assets/page-[hash].js" } },
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": {
        target: daemon,
        changeOrigin: true,
        headers: token ? { authorization: `Bearer ${token}`, origin: daemon } : {},
      },
    },
  },
});
