//! Tables for people: rows in aligned columns.

/// The lines of a table, the first row its heads. Columns of numbers are aligned by their ends where `is_number` says so.
pub(crate) fn lines<const COLUMNS: usize>(rows: &[[String; COLUMNS]], is_number: [bool; COLUMNS]) -> Vec<String> {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).zip(is_number).map(|((cell, width), is_number)| match is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "S"], ["ä", "1.5"], ["long one", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(lines(&rows, [false, true]), ["NAME        S", "ä         1.5", "long one"]);
    }
}
