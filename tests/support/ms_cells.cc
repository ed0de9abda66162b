/* Sets cells of a MeasurementSet that tessera does not write, by casacore. */
#include "ms_cells.h"

#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/Table.h>

#include <filesystem>

void ms_set_flag_row(const char *path, const int64_t *rows, int num_rows)
{
    casacore::Table table(std::filesystem::absolute(path).string(),
                          casacore::Table::Update);
    casacore::ScalarColumn<casacore::Bool> column(table, "FLAG_ROW");
    column.fillColumn(casacore::False);
    for (int k = 0; k < num_rows; ++k)
        column.put(static_cast<casacore::rownr_t>(rows[k]), casacore::True);
}
