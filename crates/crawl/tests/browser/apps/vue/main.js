import { createApp } from "vue";
import { createRouter, createWebHistory } from "vue-router";
import App from "./App.vue";

const component = () => import("./Article.vue");
const paths = ["/", "/:name", "/regions/:region"];
const router = createRouter({
  history: createWebHistory(),
  routes: paths.map((path) => ({ path, component })),
});
createApp(App).use(router).mount("#app");
