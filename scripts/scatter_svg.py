"""Draws measured against predicted as SVG: both on logarithmic axes, and beside them a strip of errors for each source.

Standard library only, a few kilobytes a drawing, the same bytes for the same numbers (coordinates are rounded to 0.1).
"""
import math
from html import escape

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#d37295", "#2f9e9a", "#8a8a2f", "#555555")
LEFT, TOP, SIDE = 52, 40, 320  # the square panel
STRIPS, STRIP_WIDTH = LEFT + SIDE + 230, 300  # the strips, their names to the left of them
FONT = 'font-family="sans-serif" font-size="11"'


def number(x):
    text = f"{x:.1f}"
    return text[:-2] if text.endswith(".0") else text


def text(x, y, words, anchor="start", extra=""):
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#cccccc", extra=""):
    return (
        f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{colour}"{extra}/>'
    )


def dots(points, colour):
    """One path for all of them: a stroke of no length with round ends is a dot."""
    moves = "".join(f"M{number(x)} {number(y)}h0" for x, y in points)
    style = 'stroke-width="5" stroke-linecap="round" stroke-opacity="0.65" fill="none"'
    return f'<path d="{moves}" stroke="{colour}" {style}/>'


def ticks(low, high):
    """1, 2 and 5 of each decade within [low, high]."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**d for d in decades for m in (1, 2, 5) if low <= m * 10.0**d <= high]


def panel(groups, quantity):
    values = [v for points in groups.values() for pair in points for v in pair]
    low, high = min(values) / 1.2, max(values) * 1.2
    scale = SIDE / math.log(high / low)

    def at(value):
        return math.log(value / low) * scale

    bottom = TOP + SIDE
    out = [f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999999"/>']
    for tick in ticks(low, high):
        a = at(tick)
        out.append(line(LEFT + a, TOP, LEFT + a, bottom, "#eeeeee"))
        out.append(line(LEFT, bottom - a, LEFT + SIDE, bottom - a, "#eeeeee"))
        out.append(text(LEFT + a, bottom + 15, f"{tick:g}", "middle"))
        out.append(text(LEFT - 6, bottom - a + 4, f"{tick:g}", "end"))
    out.append(line(LEFT, bottom, LEFT + SIDE, TOP, "#888888"))
    for factor in (0.9, 1.1):  # predicted = factor x measured
        shift = math.log(factor) * scale
        up, right = max(shift, 0.0), max(-shift, 0.0)
        ends = (LEFT + right, bottom - up, LEFT + SIDE - up, TOP + right)
        out.append(line(*ends, "#888888", ' stroke-dasharray="3 3"'))
    for colour, points in zip(COLOURS, groups.values()):
        out.append(dots([(LEFT + at(m), bottom - at(p)) for m, p in points], colour))
    out.append(text(LEFT + SIDE / 2, bottom + 32, f"measured {quantity}", "middle"))
    upright = f' transform="translate(14 {TOP + SIDE // 2}) rotate(-90)"'
    out.append(text(0, 0, f"predicted {quantity}", "middle", upright))
    out.append(text(LEFT + 8, TOP + 16, "dashed: 10% off"))
    return out


def strips(groups, limit):
    """Errors in percent; those beyond the limit are drawn on the edge and counted there."""
    row = SIDE / len(groups)
    middle = STRIPS + STRIP_WIDTH / 2
    bottom = TOP + SIDE

    def at(error):
        return middle + max(-1.0, min(1.0, error / limit)) * STRIP_WIDTH / 2

    out = []
    for error in (-limit, -limit / 2, 0, limit / 2, limit):
        out.append(line(at(error), TOP, at(error), bottom, "#888888" if error == 0 else "#dddddd"))
        out.append(text(at(error), bottom + 15, f"{error:+g}%" if error else "0", "middle"))
    for index, (colour, (name, points)) in enumerate(zip(COLOURS, groups.items())):
        y = TOP + (index + 0.5) * row
        errors = [100 * (p / m - 1) for m, p in points]
        spread = [((i * 7) % 11 - 5) / 11 * row * 0.7 for i in range(len(errors))]
        out.append(dots([(at(e), y + d) for e, d in zip(errors, spread)], colour))
        out.append(text(STRIPS - 56, y + 4, f"{name} ({len(errors)})", "end"))
        for side, beyond in ((-1, sum(e < -limit for e in errors)), (1, sum(e > limit for e in errors))):
            if beyond:
                x = middle + side * (STRIP_WIDTH / 2 + 8)
                out.append(text(x, y + 4, f"{beyond} more", "start" if side > 0 else "end"))
    out.append(text(middle, bottom + 32, "error: predicted / measured - 1", "middle"))
    return out


def scatter(title, quantity, groups, limit):
    """groups: name -> [(measured, predicted)], at most as many as COLOURS. limit: the strips' range, in percent."""
    if len(groups) > len(COLOURS):
        raise ValueError(f"{len(groups)} sources, {len(COLOURS)} colours")
    width, height = STRIPS + STRIP_WIDTH + 60, TOP + SIDE + 44
    body = [text(LEFT, 22, title, "start", ' font-size="14" font-weight="bold"')]
    body += panel(groups, quantity) + strips(groups, limit)
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} {FONT}>\n'
        f'<rect {size} fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )
