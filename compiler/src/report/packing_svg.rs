//! A picture of a packing: time to the right, bytes upwards, one rectangle for each live span of a buffer.

use std::fmt::Write as _;

use slabplan_planner::pack::{Packing, csv::Named};

/// Width and height of the picture in pixels.
const CANVAS: (f64, f64) = (1200.0, 700.0);
/// Most rectangles drawn: the largest by area. Browsers choke on more.
const MOST: usize = 50_000;

/// Draws a packing. Each rectangle has the buffer's name, span, size and offset as its tooltip.
pub fn packing_svg(named: &Named, packing: &Packing) -> String {
    let mut spans: Vec<(usize, u64, u64)> = Vec::new();
    for (index, buffer) in named.problem.buffers.iter().enumerate() {
        let live = buffer
            .live
            .iter()
            .filter(|span| !span.is_empty() && buffer.size > 0);
        spans.extend(live.map(|span| (index, span.start, span.end)));
    }
    let first = spans.iter().map(|it| it.1).min().unwrap_or(0);
    let last = spans.iter().map(|it| it.2).max().unwrap_or(1);
    let area = |&(index, start, end): &(usize, u64, u64)| {
        u128::from(end - start) * u128::from(named.problem.buffers[index].size)
    };
    spans.sort_by_key(|it| (std::cmp::Reverse(area(it)), *it));
    let left_out = spans.len().saturating_sub(MOST);
    spans.truncate(MOST);
    let (width, height) = CANVAS;
    let x = |time: u64| (time - first) as f64 / (last - first).max(1) as f64 * width;
    let scale = height / packing.height.max(1) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{} buffers in {} bytes</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#f4f4f4\"/>\n",
        height + 24.0,
        named.names.len(),
        packing.height,
    );
    for &(index, start, end) in &spans {
        let (buffer, offset) = (&named.problem.buffers[index], packing.offsets[index]);
        let name = escape(&named.names[index]);
        // Neighbouring hues are far apart, whatever the order of the rows.
        let hue = (buffer.id * 137) % 360;
        let _ = writeln!(
            out,
            "<rect x=\"{:.3}\" y=\"{:.3}\" width=\"{:.3}\" height=\"{:.3}\" fill=\"hsl({hue},55%,65%)\" stroke=\"#333\" \
             stroke-width=\"0.3\"><title>{name}: [{start}, {end}), {} bytes at {offset}</title></rect>",
            x(start),
            height - (offset + buffer.size) as f64 * scale,
            x(end) - x(start),
            buffer.size as f64 * scale,
            buffer.size,
        );
    }
    let bound = height - packing.lower_bound as f64 * scale;
    let _ = writeln!(
        out,
        "<line x1=\"0\" x2=\"{width}\" y1=\"{bound:.3}\" y2=\"{bound:.3}\" stroke=\"#c00\" stroke-dasharray=\"6 4\"/>"
    );
    let note = if left_out > 0 {
        format!("; {left_out} small rectangles left out")
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<text x=\"4\" y=\"{}\">time {first} to {last}; {} bytes high, lower bound {} (dashed){note}</text>\n</svg>",
        height + 16.0,
        packing.height,
        packing.lower_bound,
    );
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
