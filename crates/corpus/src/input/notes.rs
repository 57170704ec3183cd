//! Writes Parquet columns with the decisions about documents. They follow the columns of the input.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{Type, TypePtr};

use super::annotate::NoteField;
use super::{Annotation, AnnotationOptions, DocumentNote};

/// Number of decisions that are in memory at a time.
const TOGETHER: usize = 4096;

/// Returns the columns of the input, followed by the added columns.
pub(super) fn columns(root: &Type, noted: &AnnotationOptions) -> Result<TypePtr, ParquetError> {
    let mut fields = root.get_fields().to_vec();
    for field in noted.fields() {
        let (of_type, logical) = match field {
            NoteField::ClusterId | NoteField::ClusterSize => (PhysicalType::INT64, None),
            NoteField::Kept => (PhysicalType::BOOLEAN, None),
            NoteField::Score => (PhysicalType::DOUBLE, None),
            NoteField::NearKey | NoteField::Spans => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if matches!(field, NoteField::Kept | NoteField::Spans) {
            Repetition::REQUIRED
        } else {
            Repetition::OPTIONAL
        };
        let name = noted.name(field);
        let column = Type::primitive_type_builder(&name, of_type);
        fields.push(Arc::new(column.with_repetition(repetition).with_logical_type(logical).build()?));
    }
    Ok(Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?))
}

/// Writes the added columns of a row group whose rows are these documents.
pub(super) fn write<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    documents: &[u32],
    annotation: Annotation<'_>,
) -> Result<(), ParquetError> {
    for field in annotation.noted.fields() {
        let missing = || ParquetError::General("fewer columns than were added".to_owned());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        for some in documents.chunks(TOGETHER) {
            let notes: Vec<DocumentNote> = some.iter().map(|&document| (annotation.of)(document)).collect();
            let levels = |is_there: fn(&DocumentNote) -> bool| -> Vec<i16> {
                notes.iter().map(|note| i16::from(is_there(note))).collect()
            };
            match field {
                NoteField::ClusterId | NoteField::ClusterSize => {
                    let of = |(id, size)| i64::from(if field == NoteField::ClusterId { id } else { size });
                    let values: Vec<i64> = notes.iter().filter_map(|note| note.cluster.map(of)).collect();
                    let levels = levels(|note| note.cluster.is_some());
                    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                NoteField::Kept => {
                    let values: Vec<bool> = notes.iter().map(|note| note.is_kept).collect();
                    column.typed::<BoolType>().write_batch(&values, None, None)?;
                }
                NoteField::Score => {
                    let values: Vec<f64> = notes.iter().filter_map(score).collect();
                    let levels = levels(|note| score(note).is_some());
                    column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                NoteField::Spans => {
                    let values: Vec<ByteArray> =
                        notes.iter().map(|note| ByteArray::from(note.spans.clone())).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                NoteField::NearKey => {
                    // String columns must be UTF-8.
                    let of = |key: &Vec<u8>| ByteArray::from(String::from_utf8_lossy(key).as_ref());
                    let values: Vec<ByteArray> =
                        notes.iter().filter_map(|note| note.near_key.as_ref().map(of)).collect();
                    let levels = levels(|note| note.near_key.is_some());
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
        }
        column.close()?;
    }
    Ok(())
}

fn score(note: &DocumentNote) -> Option<f64> {
    std::str::from_utf8(&note.score).ok()?.parse().ok()
}
