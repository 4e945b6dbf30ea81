// Markdown as components. No HTML is made: what looks like a tag is text, and a link goes nowhere but to the web.
import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { plain } from "./words";

/** Longer than this nobody reads it as prose. */
const MAX_CHARS = 100_000;

/** One line of words: no mark of Markdown, no link, and no beginning of a list, a heading or a quotation. */
const WORDS = /^[\p{L}("“][^\n*_`~<>&[\]\\|@:]*$/u;

/** A text that Markdown would not change: most lines of an agent are, and reading them as Markdown takes longer than drawing them. */
export const isWords = (text: string) => text.length < 1000 && WORDS.test(text) && !text.includes("www.");

export function Markdown({ text }: { text: string }) {
  if (isWords(text))
    return (
      <div class="prose">
        <p>{plain(text).trimEnd()}</p>
      </div>
    );
  return <Formatted text={text} />;
}

function Formatted({ text }: { text: string }) {
  const tokens = useMemo(() => (text.length > MAX_CHARS ? null : new Lexer({ gfm: true }).lex(plain(text))), [text]);
  if (!tokens) return <pre class="out">{plain(text)}</pre>;
  return <div class="prose">{blocks(tokens)}</div>;
}

function blocks(tokens: Token[]): ComponentChildren[] {
  return tokens.map((token, at) => <Block key={at} token={token} />);
}

function Block({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <p class="heading">{inlines((token as Tokens.Heading).tokens)}</p>;
    case "paragraph":
      return <p>{inlines((token as Tokens.Paragraph).tokens)}</p>;
    case "text": {
      const inner = (token as Tokens.Text).tokens;
      return inner ? inlines(inner) : (token as Tokens.Text).text;
    }
    case "code":
      return (
        <pre class="out" tabIndex={0}>
          {(token as Tokens.Code).text}
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => <li key={at}>{blocks(item.tokens)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const table = token as Tokens.Table;
      return (
        <div class="scrolls">
          <table class="table">
            <thead>
              <tr>
                {table.header.map((cell, at) => (
                  <th key={at}>{inlines(cell.tokens)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {table.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column}>{inlines(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
    case "hr":
      return <hr />;
    default:
      return <p>{token.raw}</p>;
  }
}

function inlines(tokens: Token[]): ComponentChildren[] {
  return tokens.map((token, at) => <Inline key={at} token={token} />);
}

function Inline({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inlines((token as Tokens.Strong).tokens)}</strong>;
    case "em":
      return <em>{inlines((token as Tokens.Em).tokens)}</em>;
    case "del":
      return <del>{inlines((token as Tokens.Del).tokens)}</del>;
    case "codespan":
      return <code>{unescaped((token as Tokens.Codespan).text)}</code>;
    case "br":
      return <br />;
    case "link": {
      const link = token as Tokens.Link;
      if (!/^https?:\/\//i.test(link.href)) return link.raw;
      return (
        <a class="link" href={link.href} target="_blank" rel="noreferrer noopener">
          {inlines(link.tokens)}
        </a>
      );
    }
    case "text": {
      const inner = (token as Tokens.Text).tokens;
      return inner ? inlines(inner) : unescaped((token as Tokens.Text).text);
    }
    case "escape":
      return (token as Tokens.Escape).text;
    default:
      return token.raw;
  }
}

/** The lexer escapes for HTML, which we do not make. */
function unescaped(text: string): string {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
