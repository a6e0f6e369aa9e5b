"""Compiled, never run: one function for each kind of code the compiler lays out in its own way."""
# ruff: noqa
# The functions are listed in bytecode/dump_test.go's expectations by name where a test needs a certain one.


def seed_multiply(a, b):
    if b.sum() < 0:
        b = b * -1
    return a * b


def closures(a, /, b, *args, c=1, **kwargs):
    cell = a

    def inner(x=b):
        nonlocal cell
        cell += x
        return cell, args, kwargs, c

    class Local:
        field = cell
        other: int = a

        def method(self):
            return __class__, super().method()

    del cell
    return inner, Local, lambda: (yield a)


def loops(items, n):
    total = 0
    for i, (a, *b, c) in enumerate(items):
        if i == n:
            continue
        if a is None or b is not None and c:
            break
        while a:
            a -= 1
            if a in b or a not in c:
                break
        else:
            total @= a
        total += a
    else:
        total = -total
    return total if total else ~n


def exceptions(f, g):
    try:
        try:
            x = f()
        except (ValueError, TypeError) as e:
            raise RuntimeError("x") from e
        except KeyError:
            return 1
        else:
            g(x)
        finally:
            g(None)
    except* OSError as group:
        assert group, "message"
    for y in x:
        try:
            if y:
                continue
            break
        finally:
            g(y)
    return x


def contexts(cm, other):
    with cm as a, other() as (b, c):
        if a:
            return b
        for x in c:
            with x:
                yield x
    return None


def generator(xs):
    received = yield from xs
    while (received := (yield received)) is not None:
        pass
    return [y for y in received] if xs else (z for z in xs)


async def coroutine(a, b):
    async with a as x, b:
        await x
    async for y in a:
        if y:
            yield y
    else:
        yield None
    result = [await z async for z in b if z]
    yield {k: v async for k, v in result}


def matching(subject):
    match subject:
        case {"a": x, **rest} if x:
            return rest
        case [1, 2, *tail] | (3, 4, *tail):
            return tail
        case int(real=y) | complex(y):
            return y
        case None | True | "text":
            return 0
        case _:
            return subject


def displays(a, b, c):
    t = (a, *b, c)
    l = [1, 2, 3, *a]
    s = {a, *b, 1}
    d = {**a, "b": b, **c, 1: 2}
    k = {"x": a, "y": b, "z": c}
    e = {x: y for x, y in zip(a, b)} | {x for x in c if x} 
    f = f"{a!r:>{b}} {c:x} {a!s}" f"{b!a}"
    sl = a[1:2], a[b:c:2], a[:, ..., None]
    a[b], c[1:] = a[b], c
    del a[b], c.attr, b[1:2]
    return t, l, s, d, k, e, f, sl


def calls(f, a, b):
    f()
    f(a, b, key=1, other=2)
    f(*a, **b)
    f(a, *b, key=1, **a)
    a.method(b).chain(key=a)(b)
    print(f(a if b else f), sep="" if a else b)
    return f(
        a,
        b.c(
            1,
        ),
    )


def globals_and_imports():
    global counter, gone
    import os.path as p, sys
    from os import path, sep as s
    from . import sibling
    counter += 1
    del gone
    return p, sys, path, s, sibling, __debug__, counter


def short_circuits(a, b, c):
    x = a and b or c
    y = not (a < b <= c != a)
    z = a and (b or c) and not c
    if (a or b) and (c or not a):
        return x
    while a and not b or c:
        a, b = b, +a
        a, b, c = c, a, b
    while a is None:
        b()
    while a is not None:
        c()
    return y or z


def delete_and_annotate(a):
    b: int = a
    del a
    (b)
    try:
        return b
    except NameError as e:
        del e
    return locals()


def long_line(): return [                                                                                                                                        x.attr for x in globals_and_imports() if x]


value: int = 1
text: "str"


def many_names():
    """Arguments above 255: names, constants, and jumps over long bodies."""
    name_0 = glob_0.attr_0 + 1000; name_1 = glob_1.attr_1 + 1001; name_2 = glob_2.attr_2 + 1002; name_3 = glob_3.attr_3 + 1003; name_4 = glob_4.attr_4 + 1004; name_5 = glob_5.attr_5 + 1005; name_6 = glob_6.attr_6 + 1006; name_7 = glob_7.attr_7 + 1007; name_8 = glob_8.attr_8 + 1008; name_9 = glob_9.attr_9 + 1009
    name_10 = glob_10.attr_10 + 1010; name_11 = glob_11.attr_11 + 1011; name_12 = glob_12.attr_12 + 1012; name_13 = glob_13.attr_13 + 1013; name_14 = glob_14.attr_14 + 1014; name_15 = glob_15.attr_15 + 1015; name_16 = glob_16.attr_16 + 1016; name_17 = glob_17.attr_17 + 1017; name_18 = glob_18.attr_18 + 1018; name_19 = glob_19.attr_19 + 1019
    name_20 = glob_20.attr_20 + 1020; name_21 = glob_21.attr_21 + 1021; name_22 = glob_22.attr_22 + 1022; name_23 = glob_23.attr_23 + 1023; name_24 = glob_24.attr_24 + 1024; name_25 = glob_25.attr_25 + 1025; name_26 = glob_26.attr_26 + 1026; name_27 = glob_27.attr_27 + 1027; name_28 = glob_28.attr_28 + 1028; name_29 = glob_29.attr_29 + 1029
    name_30 = glob_30.attr_30 + 1030; name_31 = glob_31.attr_31 + 1031; name_32 = glob_32.attr_32 + 1032; name_33 = glob_33.attr_33 + 1033; name_34 = glob_34.attr_34 + 1034; name_35 = glob_35.attr_35 + 1035; name_36 = glob_36.attr_36 + 1036; name_37 = glob_37.attr_37 + 1037; name_38 = glob_38.attr_38 + 1038; name_39 = glob_39.attr_39 + 1039
    name_40 = glob_40.attr_40 + 1040; name_41 = glob_41.attr_41 + 1041; name_42 = glob_42.attr_42 + 1042; name_43 = glob_43.attr_43 + 1043; name_44 = glob_44.attr_44 + 1044; name_45 = glob_45.attr_45 + 1045; name_46 = glob_46.attr_46 + 1046; name_47 = glob_47.attr_47 + 1047; name_48 = glob_48.attr_48 + 1048; name_49 = glob_49.attr_49 + 1049
    name_50 = glob_50.attr_50 + 1050; name_51 = glob_51.attr_51 + 1051; name_52 = glob_52.attr_52 + 1052; name_53 = glob_53.attr_53 + 1053; name_54 = glob_54.attr_54 + 1054; name_55 = glob_55.attr_55 + 1055; name_56 = glob_56.attr_56 + 1056; name_57 = glob_57.attr_57 + 1057; name_58 = glob_58.attr_58 + 1058; name_59 = glob_59.attr_59 + 1059
    name_60 = glob_60.attr_60 + 1060; name_61 = glob_61.attr_61 + 1061; name_62 = glob_62.attr_62 + 1062; name_63 = glob_63.attr_63 + 1063; name_64 = glob_64.attr_64 + 1064; name_65 = glob_65.attr_65 + 1065; name_66 = glob_66.attr_66 + 1066; name_67 = glob_67.attr_67 + 1067; name_68 = glob_68.attr_68 + 1068; name_69 = glob_69.attr_69 + 1069
    name_70 = glob_70.attr_70 + 1070; name_71 = glob_71.attr_71 + 1071; name_72 = glob_72.attr_72 + 1072; name_73 = glob_73.attr_73 + 1073; name_74 = glob_74.attr_74 + 1074; name_75 = glob_75.attr_75 + 1075; name_76 = glob_76.attr_76 + 1076; name_77 = glob_77.attr_77 + 1077; name_78 = glob_78.attr_78 + 1078; name_79 = glob_79.attr_79 + 1079
    name_80 = glob_80.attr_80 + 1080; name_81 = glob_81.attr_81 + 1081; name_82 = glob_82.attr_82 + 1082; name_83 = glob_83.attr_83 + 1083; name_84 = glob_84.attr_84 + 1084; name_85 = glob_85.attr_85 + 1085; name_86 = glob_86.attr_86 + 1086; name_87 = glob_87.attr_87 + 1087; name_88 = glob_88.attr_88 + 1088; name_89 = glob_89.attr_89 + 1089
    name_90 = glob_90.attr_90 + 1090; name_91 = glob_91.attr_91 + 1091; name_92 = glob_92.attr_92 + 1092; name_93 = glob_93.attr_93 + 1093; name_94 = glob_94.attr_94 + 1094; name_95 = glob_95.attr_95 + 1095; name_96 = glob_96.attr_96 + 1096; name_97 = glob_97.attr_97 + 1097; name_98 = glob_98.attr_98 + 1098; name_99 = glob_99.attr_99 + 1099
    name_100 = glob_100.attr_100 + 1100; name_101 = glob_101.attr_101 + 1101; name_102 = glob_102.attr_102 + 1102; name_103 = glob_103.attr_103 + 1103; name_104 = glob_104.attr_104 + 1104; name_105 = glob_105.attr_105 + 1105; name_106 = glob_106.attr_106 + 1106; name_107 = glob_107.attr_107 + 1107; name_108 = glob_108.attr_108 + 1108; name_109 = glob_109.attr_109 + 1109
    name_110 = glob_110.attr_110 + 1110; name_111 = glob_111.attr_111 + 1111; name_112 = glob_112.attr_112 + 1112; name_113 = glob_113.attr_113 + 1113; name_114 = glob_114.attr_114 + 1114; name_115 = glob_115.attr_115 + 1115; name_116 = glob_116.attr_116 + 1116; name_117 = glob_117.attr_117 + 1117; name_118 = glob_118.attr_118 + 1118; name_119 = glob_119.attr_119 + 1119
    name_120 = glob_120.attr_120 + 1120; name_121 = glob_121.attr_121 + 1121; name_122 = glob_122.attr_122 + 1122; name_123 = glob_123.attr_123 + 1123; name_124 = glob_124.attr_124 + 1124; name_125 = glob_125.attr_125 + 1125; name_126 = glob_126.attr_126 + 1126; name_127 = glob_127.attr_127 + 1127; name_128 = glob_128.attr_128 + 1128; name_129 = glob_129.attr_129 + 1129
    name_130 = glob_130.attr_130 + 1130; name_131 = glob_131.attr_131 + 1131; name_132 = glob_132.attr_132 + 1132; name_133 = glob_133.attr_133 + 1133; name_134 = glob_134.attr_134 + 1134; name_135 = glob_135.attr_135 + 1135; name_136 = glob_136.attr_136 + 1136; name_137 = glob_137.attr_137 + 1137; name_138 = glob_138.attr_138 + 1138; name_139 = glob_139.attr_139 + 1139
    name_140 = glob_140.attr_140 + 1140; name_141 = glob_141.attr_141 + 1141; name_142 = glob_142.attr_142 + 1142; name_143 = glob_143.attr_143 + 1143; name_144 = glob_144.attr_144 + 1144; name_145 = glob_145.attr_145 + 1145; name_146 = glob_146.attr_146 + 1146; name_147 = glob_147.attr_147 + 1147; name_148 = glob_148.attr_148 + 1148; name_149 = glob_149.attr_149 + 1149
    name_150 = glob_150.attr_150 + 1150; name_151 = glob_151.attr_151 + 1151; name_152 = glob_152.attr_152 + 1152; name_153 = glob_153.attr_153 + 1153; name_154 = glob_154.attr_154 + 1154; name_155 = glob_155.attr_155 + 1155; name_156 = glob_156.attr_156 + 1156; name_157 = glob_157.attr_157 + 1157; name_158 = glob_158.attr_158 + 1158; name_159 = glob_159.attr_159 + 1159
    name_160 = glob_160.attr_160 + 1160; name_161 = glob_161.attr_161 + 1161; name_162 = glob_162.attr_162 + 1162; name_163 = glob_163.attr_163 + 1163; name_164 = glob_164.attr_164 + 1164; name_165 = glob_165.attr_165 + 1165; name_166 = glob_166.attr_166 + 1166; name_167 = glob_167.attr_167 + 1167; name_168 = glob_168.attr_168 + 1168; name_169 = glob_169.attr_169 + 1169
    name_170 = glob_170.attr_170 + 1170; name_171 = glob_171.attr_171 + 1171; name_172 = glob_172.attr_172 + 1172; name_173 = glob_173.attr_173 + 1173; name_174 = glob_174.attr_174 + 1174; name_175 = glob_175.attr_175 + 1175; name_176 = glob_176.attr_176 + 1176; name_177 = glob_177.attr_177 + 1177; name_178 = glob_178.attr_178 + 1178; name_179 = glob_179.attr_179 + 1179
    name_180 = glob_180.attr_180 + 1180; name_181 = glob_181.attr_181 + 1181; name_182 = glob_182.attr_182 + 1182; name_183 = glob_183.attr_183 + 1183; name_184 = glob_184.attr_184 + 1184; name_185 = glob_185.attr_185 + 1185; name_186 = glob_186.attr_186 + 1186; name_187 = glob_187.attr_187 + 1187; name_188 = glob_188.attr_188 + 1188; name_189 = glob_189.attr_189 + 1189
    name_190 = glob_190.attr_190 + 1190; name_191 = glob_191.attr_191 + 1191; name_192 = glob_192.attr_192 + 1192; name_193 = glob_193.attr_193 + 1193; name_194 = glob_194.attr_194 + 1194; name_195 = glob_195.attr_195 + 1195; name_196 = glob_196.attr_196 + 1196; name_197 = glob_197.attr_197 + 1197; name_198 = glob_198.attr_198 + 1198; name_199 = glob_199.attr_199 + 1199
    name_200 = glob_200.attr_200 + 1200; name_201 = glob_201.attr_201 + 1201; name_202 = glob_202.attr_202 + 1202; name_203 = glob_203.attr_203 + 1203; name_204 = glob_204.attr_204 + 1204; name_205 = glob_205.attr_205 + 1205; name_206 = glob_206.attr_206 + 1206; name_207 = glob_207.attr_207 + 1207; name_208 = glob_208.attr_208 + 1208; name_209 = glob_209.attr_209 + 1209
    name_210 = glob_210.attr_210 + 1210; name_211 = glob_211.attr_211 + 1211; name_212 = glob_212.attr_212 + 1212; name_213 = glob_213.attr_213 + 1213; name_214 = glob_214.attr_214 + 1214; name_215 = glob_215.attr_215 + 1215; name_216 = glob_216.attr_216 + 1216; name_217 = glob_217.attr_217 + 1217; name_218 = glob_218.attr_218 + 1218; name_219 = glob_219.attr_219 + 1219
    name_220 = glob_220.attr_220 + 1220; name_221 = glob_221.attr_221 + 1221; name_222 = glob_222.attr_222 + 1222; name_223 = glob_223.attr_223 + 1223; name_224 = glob_224.attr_224 + 1224; name_225 = glob_225.attr_225 + 1225; name_226 = glob_226.attr_226 + 1226; name_227 = glob_227.attr_227 + 1227; name_228 = glob_228.attr_228 + 1228; name_229 = glob_229.attr_229 + 1229
    name_230 = glob_230.attr_230 + 1230; name_231 = glob_231.attr_231 + 1231; name_232 = glob_232.attr_232 + 1232; name_233 = glob_233.attr_233 + 1233; name_234 = glob_234.attr_234 + 1234; name_235 = glob_235.attr_235 + 1235; name_236 = glob_236.attr_236 + 1236; name_237 = glob_237.attr_237 + 1237; name_238 = glob_238.attr_238 + 1238; name_239 = glob_239.attr_239 + 1239
    name_240 = glob_240.attr_240 + 1240; name_241 = glob_241.attr_241 + 1241; name_242 = glob_242.attr_242 + 1242; name_243 = glob_243.attr_243 + 1243; name_244 = glob_244.attr_244 + 1244; name_245 = glob_245.attr_245 + 1245; name_246 = glob_246.attr_246 + 1246; name_247 = glob_247.attr_247 + 1247; name_248 = glob_248.attr_248 + 1248; name_249 = glob_249.attr_249 + 1249
    name_250 = glob_250.attr_250 + 1250; name_251 = glob_251.attr_251 + 1251; name_252 = glob_252.attr_252 + 1252; name_253 = glob_253.attr_253 + 1253; name_254 = glob_254.attr_254 + 1254; name_255 = glob_255.attr_255 + 1255; name_256 = glob_256.attr_256 + 1256; name_257 = glob_257.attr_257 + 1257; name_258 = glob_258.attr_258 + 1258; name_259 = glob_259.attr_259 + 1259
    name_260 = glob_260.attr_260 + 1260; name_261 = glob_261.attr_261 + 1261; name_262 = glob_262.attr_262 + 1262; name_263 = glob_263.attr_263 + 1263; name_264 = glob_264.attr_264 + 1264; name_265 = glob_265.attr_265 + 1265; name_266 = glob_266.attr_266 + 1266; name_267 = glob_267.attr_267 + 1267; name_268 = glob_268.attr_268 + 1268; name_269 = glob_269.attr_269 + 1269
    name_270 = glob_270.attr_270 + 1270; name_271 = glob_271.attr_271 + 1271; name_272 = glob_272.attr_272 + 1272; name_273 = glob_273.attr_273 + 1273; name_274 = glob_274.attr_274 + 1274; name_275 = glob_275.attr_275 + 1275; name_276 = glob_276.attr_276 + 1276; name_277 = glob_277.attr_277 + 1277; name_278 = glob_278.attr_278 + 1278; name_279 = glob_279.attr_279 + 1279
    name_280 = glob_280.attr_280 + 1280; name_281 = glob_281.attr_281 + 1281; name_282 = glob_282.attr_282 + 1282; name_283 = glob_283.attr_283 + 1283; name_284 = glob_284.attr_284 + 1284; name_285 = glob_285.attr_285 + 1285; name_286 = glob_286.attr_286 + 1286; name_287 = glob_287.attr_287 + 1287; name_288 = glob_288.attr_288 + 1288; name_289 = glob_289.attr_289 + 1289
    name_290 = glob_290.attr_290 + 1290; name_291 = glob_291.attr_291 + 1291; name_292 = glob_292.attr_292 + 1292; name_293 = glob_293.attr_293 + 1293; name_294 = glob_294.attr_294 + 1294; name_295 = glob_295.attr_295 + 1295; name_296 = glob_296.attr_296 + 1296; name_297 = glob_297.attr_297 + 1297; name_298 = glob_298.attr_298 + 1298; name_299 = glob_299.attr_299 + 1299
    for x in name_0:
        if x:
            continue
        try:
            name_0 = name_299; name_1 = name_298; name_2 = name_297; name_3 = name_296; name_4 = name_295; name_5 = name_294; name_6 = name_293; name_7 = name_292; name_8 = name_291; name_9 = name_290
            name_10 = name_289; name_11 = name_288; name_12 = name_287; name_13 = name_286; name_14 = name_285; name_15 = name_284; name_16 = name_283; name_17 = name_282; name_18 = name_281; name_19 = name_280
            name_20 = name_279; name_21 = name_278; name_22 = name_277; name_23 = name_276; name_24 = name_275; name_25 = name_274; name_26 = name_273; name_27 = name_272; name_28 = name_271; name_29 = name_270
            name_30 = name_269; name_31 = name_268; name_32 = name_267; name_33 = name_266; name_34 = name_265; name_35 = name_264; name_36 = name_263; name_37 = name_262; name_38 = name_261; name_39 = name_260
            name_40 = name_259; name_41 = name_258; name_42 = name_257; name_43 = name_256; name_44 = name_255; name_45 = name_254; name_46 = name_253; name_47 = name_252; name_48 = name_251; name_49 = name_250
            name_50 = name_249; name_51 = name_248; name_52 = name_247; name_53 = name_246; name_54 = name_245; name_55 = name_244; name_56 = name_243; name_57 = name_242; name_58 = name_241; name_59 = name_240
            name_60 = name_239; name_61 = name_238; name_62 = name_237; name_63 = name_236; name_64 = name_235; name_65 = name_234; name_66 = name_233; name_67 = name_232; name_68 = name_231; name_69 = name_230
            name_70 = name_229; name_71 = name_228; name_72 = name_227; name_73 = name_226; name_74 = name_225; name_75 = name_224; name_76 = name_223; name_77 = name_222; name_78 = name_221; name_79 = name_220
            name_80 = name_219; name_81 = name_218; name_82 = name_217; name_83 = name_216; name_84 = name_215; name_85 = name_214; name_86 = name_213; name_87 = name_212; name_88 = name_211; name_89 = name_210
            name_90 = name_209; name_91 = name_208; name_92 = name_207; name_93 = name_206; name_94 = name_205; name_95 = name_204; name_96 = name_203; name_97 = name_202; name_98 = name_201; name_99 = name_200
            name_100 = name_199; name_101 = name_198; name_102 = name_197; name_103 = name_196; name_104 = name_195; name_105 = name_194; name_106 = name_193; name_107 = name_192; name_108 = name_191; name_109 = name_190
            name_110 = name_189; name_111 = name_188; name_112 = name_187; name_113 = name_186; name_114 = name_185; name_115 = name_184; name_116 = name_183; name_117 = name_182; name_118 = name_181; name_119 = name_180
            name_120 = name_179; name_121 = name_178; name_122 = name_177; name_123 = name_176; name_124 = name_175; name_125 = name_174; name_126 = name_173; name_127 = name_172; name_128 = name_171; name_129 = name_170
            name_130 = name_169; name_131 = name_168; name_132 = name_167; name_133 = name_166; name_134 = name_165; name_135 = name_164; name_136 = name_163; name_137 = name_162; name_138 = name_161; name_139 = name_160
            name_140 = name_159; name_141 = name_158; name_142 = name_157; name_143 = name_156; name_144 = name_155; name_145 = name_154; name_146 = name_153; name_147 = name_152; name_148 = name_151; name_149 = name_150
            name_150 = name_149; name_151 = name_148; name_152 = name_147; name_153 = name_146; name_154 = name_145; name_155 = name_144; name_156 = name_143; name_157 = name_142; name_158 = name_141; name_159 = name_140
            name_160 = name_139; name_161 = name_138; name_162 = name_137; name_163 = name_136; name_164 = name_135; name_165 = name_134; name_166 = name_133; name_167 = name_132; name_168 = name_131; name_169 = name_130
            name_170 = name_129; name_171 = name_128; name_172 = name_127; name_173 = name_126; name_174 = name_125; name_175 = name_124; name_176 = name_123; name_177 = name_122; name_178 = name_121; name_179 = name_120
            name_180 = name_119; name_181 = name_118; name_182 = name_117; name_183 = name_116; name_184 = name_115; name_185 = name_114; name_186 = name_113; name_187 = name_112; name_188 = name_111; name_189 = name_110
            name_190 = name_109; name_191 = name_108; name_192 = name_107; name_193 = name_106; name_194 = name_105; name_195 = name_104; name_196 = name_103; name_197 = name_102; name_198 = name_101; name_199 = name_100
            name_200 = name_99; name_201 = name_98; name_202 = name_97; name_203 = name_96; name_204 = name_95; name_205 = name_94; name_206 = name_93; name_207 = name_92; name_208 = name_91; name_209 = name_90
            name_210 = name_89; name_211 = name_88; name_212 = name_87; name_213 = name_86; name_214 = name_85; name_215 = name_84; name_216 = name_83; name_217 = name_82; name_218 = name_81; name_219 = name_80
            name_220 = name_79; name_221 = name_78; name_222 = name_77; name_223 = name_76; name_224 = name_75; name_225 = name_74; name_226 = name_73; name_227 = name_72; name_228 = name_71; name_229 = name_70
            name_230 = name_69; name_231 = name_68; name_232 = name_67; name_233 = name_66; name_234 = name_65; name_235 = name_64; name_236 = name_63; name_237 = name_62; name_238 = name_61; name_239 = name_60
            name_240 = name_59; name_241 = name_58; name_242 = name_57; name_243 = name_56; name_244 = name_55; name_245 = name_54; name_246 = name_53; name_247 = name_52; name_248 = name_51; name_249 = name_50
            name_250 = name_49; name_251 = name_48; name_252 = name_47; name_253 = name_46; name_254 = name_45; name_255 = name_44; name_256 = name_43; name_257 = name_42; name_258 = name_41; name_259 = name_40
            name_260 = name_39; name_261 = name_38; name_262 = name_37; name_263 = name_36; name_264 = name_35; name_265 = name_34; name_266 = name_33; name_267 = name_32; name_268 = name_31; name_269 = name_30
            name_270 = name_29; name_271 = name_28; name_272 = name_27; name_273 = name_26; name_274 = name_25; name_275 = name_24; name_276 = name_23; name_277 = name_22; name_278 = name_21; name_279 = name_20
            name_280 = name_19; name_281 = name_18; name_282 = name_17; name_283 = name_16; name_284 = name_15; name_285 = name_14; name_286 = name_13; name_287 = name_12; name_288 = name_11; name_289 = name_10
            name_290 = name_9; name_291 = name_8; name_292 = name_7; name_293 = name_6; name_294 = name_5; name_295 = name_4; name_296 = name_3; name_297 = name_2; name_298 = name_1; name_299 = name_0
        except name_299:
            while name_1:
                name_2()
    return name_3 or name_4
