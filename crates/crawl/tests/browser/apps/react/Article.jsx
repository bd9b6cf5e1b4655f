import { useEffect, useState } from "react";
import { Link, useLocation } from "react-router";

export default function Article() {
  const { pathname } = useLocation();
  const [article, setArticle] = useState();
  useEffect(() => {
    const leave = new AbortController();
    fetch(`/api${pathname === "/" ? "/index" : pathname}.json`, { signal: leave.signal })
      .then((answer) => answer.json())
      .then(setArticle)
      .catch((error) => leave.signal.aborted || setArticle({ title: String(error), text: [], links: [] }));
    return () => leave.abort();
  }, [pathname]);
  if (!article) {
    return <p>Loading</p>;
  }
  return (
    <main>
      <title>{article.title}</title>
      <meta name="description" content={article.description} />
      {article.robots && <meta name="robots" content={article.robots} />}
      {article.canonical && <link rel="canonical" href={article.canonical} />}
      <h1>{article.title}</h1>
      {article.text.map((paragraph) => <p key={paragraph}>{paragraph}</p>)}
      <ul>{article.links.map((link) => <li key={link.to}><Link to={link.to}>{link.title}</Link></li>)}</ul>
    </main>
  );
}
