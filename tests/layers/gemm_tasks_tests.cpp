// GemmTasks: every output belongs to one task, and the tasks come in the promised order.
#include "vit/layers/gemm_tasks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace vit::internal {

TEST_CASE("layers: the tasks of a product cover every output once") {
  for (const std::size_t rows : {1, 2, 47, 48, 49, 96, 108, 109, 197, 216, 217, 1576}) {
    for (const std::size_t threads : {1, 2, 3, 8, 16, 64}) {
      for (const OutputRange outputs : {OutputRange{0, 1}, {0, 33}, {32, 64}, {64, 1000}, {0, 3072}}) {
        CAPTURE(rows);
        CAPTURE(threads);
        CAPTURE(outputs.begin);
        CAPTURE(outputs.end);
        const GemmShape shape{
            .rows = rows, .outputs = outputs, .panel_columns = 32, .tile_rows = 12, .threads = threads};
        const GemmTasks tasks(shape);
        std::size_t covered = 0;
        std::set<std::pair<std::size_t, std::size_t>> corners;
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          const GemmTask task = tasks[i];
          REQUIRE(task.rows > 0);
          REQUIRE(task.row + task.rows <= rows);
          REQUIRE(outputs.begin <= task.column_begin);
          REQUIRE(task.column_begin < task.column_end);
          REQUIRE(task.column_end <= outputs.end);
          REQUIRE((task.column_begin - outputs.begin) % shape.panel_columns == 0);
          REQUIRE(corners.emplace(task.row, task.column_begin).second);
          covered += task.rows * (task.column_end - task.column_begin);
        }
        CHECK(covered == rows * (outputs.end - outputs.begin));
      }
    }
  }
}

TEST_CASE("layers: all blocks of rows of a part finish some columns before the next") {
  // Two threads with two blocks of rows each: 432 rows are four blocks of 108.
  const GemmTasks tasks(
      {.rows = 432, .outputs = {0, 3072}, .panel_columns = 32, .tile_rows = 12, .threads = 2});
  const std::size_t half = tasks.size() / 2;
  for (const std::size_t first : {std::size_t{0}, half}) {
    for (std::size_t i = first; i + 1 < first + half; i += 2) {
      CHECK(tasks[i].row == (first == 0 ? 0 : 216));
      CHECK(tasks[i + 1].row == tasks[i].row + 108);
      CHECK(tasks[i + 1].column_begin == tasks[i].column_begin);
      if (i > first) CHECK(tasks[i].column_begin == tasks[i - 1].column_end);
    }
  }
}

TEST_CASE("layers: a single block of rows for each thread is cut to the row, several are cut into tiles") {
  const auto sizes_of = [](std::size_t rows, std::size_t columns) {
    const GemmTasks tasks(
        {.rows = rows, .outputs = {0, columns}, .panel_columns = 32, .tile_rows = 12, .threads = 2});
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < tasks.size(); ++i) sizes.push_back(tasks[i].rows);
    return sizes;
  };
  CHECK(sizes_of(197, 32) == std::vector<std::size_t>{98, 99});
  const std::vector<std::size_t> several = sizes_of(394, 32);
  CHECK(several.size() == 4);
  for (std::size_t i = 0; i + 1 < several.size(); ++i) CHECK(several[i] % 12 == 0);
  CHECK(sizes_of(40, 64) == std::vector<std::size_t>{40, 40});  // few rows: a panel for each thread
  CHECK(sizes_of(40, 32) == std::vector<std::size_t>{20, 20});  // which a single panel does not give
}

TEST_CASE("layers: few rows are cut into more blocks if many threads then end earlier") {
  const auto tasks_of = [](std::size_t rows, std::size_t columns, std::size_t threads) {
    return GemmTasks({.rows = rows,
                      .outputs = {0, columns},
                      .panel_columns = 32,
                      .tile_rows = 12,
                      .threads = threads})
        .size();
  };
  // 197 rows of ViT-Ti: two blocks of 99 rows are 12 tasks, of which four of eight threads would take two
  CHECK(tasks_of(197, 192, 8) == 4 * 6);
  CHECK(tasks_of(197, 192, 16) == 5 * 6);
  CHECK(tasks_of(197, 192, 64) == 10 * 6);
  CHECK(tasks_of(197, 768, 8) == 2 * 24);  // six for each thread
  CHECK(tasks_of(197, 768, 32) == 4 * 24);
  CHECK(tasks_of(197, 768, 2) == 2 * 24);
  CHECK(tasks_of(197, 576, 4) == 2 * 18);  // blocks of 49 rows end in a tile of one row
  CHECK(tasks_of(1, 768, 64) == 24);       // rows of a tile are not divided
  CHECK(tasks_of(12, 768, 64) == 24);
}

}  // namespace vit::internal
