"""A timeline as one HTML page: the SVG picture, how busy each stream is, and zooming; it loads nothing."""

from __future__ import annotations

from html import escape as escape_html

from dagsched.timeline import Timeline
from dagsched.view.terminal import escape
from dagsched.view.timeline_svg import timeline_figure
from dagsched.view.units import time_text

PAGE_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2933;--dim:#66717d;--back:#fff;--line:#d9dee4;--soft:#f4f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e3e8ee;--dim:#9aa5b1;--back:#12171d;--line:#39424d;--soft:#1c232b}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1200px;padding:24px 20px 48px;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px}p{margin:6px 0}.dim{color:var(--dim)}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px}
.wide svg{display:block}
table{border-collapse:collapse}th,td{text-align:left;padding:3px 14px 3px 0;vertical-align:top}
th{font-weight:600}td.n{text-align:right;font-variant-numeric:tabular-nums}
button{font:inherit;padding:2px 12px;margin:0 6px 6px 0;border:1px solid var(--line);border-radius:6px;
background:var(--soft);color:inherit;cursor:pointer}
code{font:13px ui-monospace,monospace}
"""

ZOOM = """\
for (const box of document.querySelectorAll('.zoom')) {
  const svg = box.querySelector('svg'), wide = box.querySelector('.wide');
  const span = svg.querySelector('[data-a]') && svg.viewBox.baseVal;
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right), whole = span.width;
  const place = (scale) => {
    const room = (right - left) * scale, x = (part) => left + room * part;
    const width = left + room + whole - right;
    svg.setAttribute('width', width); svg.setAttribute('viewBox', '0 0 ' + width + ' ' + span.height);
    for (const row of svg.querySelectorAll('.row')) row.setAttribute('width', width);
    for (const one of svg.querySelectorAll('[data-a]')) {
      const a = x(Number(one.dataset.a)), b = x(Number(one.dataset.b || one.dataset.a));
      if (one.classList.contains('span')) {
        const bar = one.querySelector('rect'), text = one.querySelector('text'), size = Math.max(0.8, b - a);
        bar.setAttribute('x', a); bar.setAttribute('width', size);
        text.setAttribute('x', (a + b) / 2);
        text.setAttribute('visibility', text.getComputedTextLength() + 6 <= size ? 'visible' : 'hidden');
      } else if (one.classList.contains('tick')) {
        const path = one.querySelector('path');
        path.setAttribute('d', path.getAttribute('d').replace(/^M[^ ]+/, 'M' + a));
        one.querySelector('text').setAttribute('x', a);
      } else {
        const ys = one.getAttribute('d').match(/[-0-9.]+/g).map(Number);
        one.setAttribute('d', `M${a} ${ys[1]}C${a} ${ys[3]} ${b} ${ys[5]} ${b} ${ys[7]}`);
      }
    }
  };
  let scale = 1;
  const zoom = (factor) => {
    const next = Math.min(512, Math.max(1, scale * factor));
    const middle = (wide.scrollLeft + wide.clientWidth / 2) / scale;
    scale = next; place(scale); wide.scrollLeft = middle * scale - wide.clientWidth / 2;
  };
  for (const [text, factor] of [['zoom in', 2], ['zoom out', 0.5], ['all', 0]]) {
    const button = document.createElement('button');
    button.textContent = text; button.onclick = () => zoom(factor || 1 / scale);
    wide.before(button);
  }
}
"""


def timeline_html(timeline: Timeline) -> str:
    """The whole page; equal timelines give equal bytes."""
    title = html(timeline.name)
    about = "; ".join(filter(None, [timeline.source, *timeline.notes]))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}: timeline</title>\n'
        f"<style>\n{PAGE_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f'<p>{time_text(timeline.makespan)} <span class="dim">{html(about)}</span></p>\n'
        f"{zoomable(timeline)}\n{busy_table(timeline)}\n<script>\n{ZOOM}</script>\n</body>\n</html>\n"
    )


def zoomable(timeline: Timeline) -> str:
    """The picture in a box that scrolls, and that :data:`ZOOM` gives buttons."""
    return f'<div class="zoom"><div class="wide">\n{timeline_figure(timeline, width=1158, titled=False)}\n</div></div>'


def busy_table(timeline: Timeline) -> str:
    """How long each stream works, of the whole run."""
    rows = []
    for track in timeline.tracks:
        mine = [span for span in timeline.spans if span.track == track]
        busy = sum(span.end - span.start for span in mine)
        share = busy / timeline.makespan if timeline.makespan else 0.0
        rows.append(
            f'<tr><td>{html(track)}</td><td class="n">{len(mine):,}</td><td class="n">{time_text(busy)}</td>'
            f'<td class="n">{share:.0%}</td></tr>'
        )
    head = "<tr><th>stream</th><th>ops</th><th>at work</th><th>of the run</th></tr>"
    return f"<h2>Streams</h2>\n<div><table>\n{head}\n{''.join(rows)}\n</table></div>"


def html(text: str) -> str:
    """Text for a page: markup as entities, control and format characters as visible escapes."""
    return escape_html(escape(text))
