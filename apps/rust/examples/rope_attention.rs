//! 2D axial RoPE by itself: how much a query in the middle of a grid attends to each patch if all patches are alike.
use vit::{attention, frequencies, AttentionOptions, Frequencies, RopeOptions, RopeTable};

fn main() -> vit::Result<()> {
    let (rows, columns, width) = (5, 5, 16);
    let tokens = rows * columns;
    let ladder = frequencies(Frequencies::Theta(100.0), width / 4)?;
    let table = RopeTable::<f32>::axial(rows, columns, &ladder, &RopeOptions::default())?;
    let alike = vec![0.8f32; tokens * width];
    let mut values = vec![0.0f32; tokens * width];
    let middle = tokens / 2;
    let mut shares = Vec::new();
    for first in (0..tokens).step_by(width) {
        // values that are 1 in the channel of their patch show the probabilities
        values.fill(0.0);
        for patch in first..tokens.min(first + width) {
            values[patch * width + patch - first] = 1.0;
        }
        let options = AttentionOptions { table: Some(&table), ..Default::default() };
        let out = attention(&alike, &alike, &values, [1, tokens, 1, width], &options)?;
        shares.extend_from_slice(&out[middle * width..middle * width + width.min(tokens - first)]);
    }
    for row in shares.chunks(columns) {
        println!("{}", row.iter().map(|share| format!("{share:.3}")).collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
