# C2: the parser without a server around it.
g++ -std=c++20 -O0 -I/product/src /sealed/parser_unit.cc /product/src/resp.cc -o /tmp/parser_unit && /tmp/parser_unit
