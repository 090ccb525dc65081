/* What both sides of the comparison have: sizes, places of the types in the input, sections.
 * No comment of this file has more than OpenCL C 1.2 takes. */
#define COUNT 2048
#define TYPE_f32 0
#define TYPE_i8 1
#define TYPE_u8 2
#define TYPE_i16 3
#define TYPE_u16 4
#define TYPE_i32 5
#define TYPE_u32 6
#define TYPE_i64 7
#define TYPE_u64 8
#define TYPE_f16 9
#define TYPE_bf16 10
#define TYPE_boolean 11
#define TYPE_f64 12
#define TYPE_tame 13
#define TYPE_tame_f64 14
#define TYPES 15
#define SECTIONS 17
#define FIRST_OF_F64 13
