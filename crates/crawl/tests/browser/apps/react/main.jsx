import { lazy, StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, NavLink, Route, Routes } from "react-router";

const Article = lazy(() => import("./Article.jsx"));

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <BrowserRouter>
      <nav><NavLink to="/">Home</NavLink></nav>
      <Suspense fallback={<p>Loading</p>}>
        <Routes>
          <Route path="/" element={<Article />} />
          <Route path="/:name" element={<Article />} />
          <Route path="/regions/:region" element={<Article />} />
        </Routes>
      </Suspense>
    </BrowserRouter>
  </StrictMode>,
);
